// A process that works on a build's repository until it is killed. Usage: node fixture.ts <directory> <what> ...
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { hasCode, newId } from "@slipway/contract";
import { openBuildRepository } from "./repository.ts";

const [directory = "", what = "", bundle = "", base = ""] = process.argv.slice(2);
const repository = await openBuildRepository({ directory, environment: process.env });

if (what === "merge") {
  for (let count = 0; ; count++) {
    const id = newId("cnd");
    console.log(`taking ${id}`);
    const { tree } = await repository.take(createReadStream(bundle), { id, ref: "refs/heads/work", base });
    const from = await repository.main();
    const to = await repository.commit({ tree, parents: [from], message: `Merge ${count}`, atMs: count * 1000 });
    console.log(`moving ${from} ${to} ${id}`);
    await repository.moveMain(from, to);
    console.log(`moved ${to}`);
  }
}

if (what === "race") {
  console.log("ready");
  for await (const line of createInterface(process.stdin)) {
    const [from = "", to = ""] = line.split(" ");
    const moved = await repository.moveMain(from, to).catch((error: unknown) => {
      if (!hasCode(error, "main_moved")) throw error;
      return "main_moved";
    });
    console.log(String(moved));
  }
}
