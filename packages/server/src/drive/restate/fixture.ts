import process from "node:process";
import { anHour } from "../testing/scripted-turns.ts";
import { restateDrive } from "./drive.ts";

/** A server that tells of each turn, until it is killed. */
const { name, ...settings } = JSON.parse(process.argv[2] ?? "");
const tell = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const open = await restateDrive(settings);
await open({
  name,
  async takeTurn(build, by, bell) {
    tell({ build, ...by, bell });
    return anHour;
  },
  warn: console.error,
});
tell("open");
setInterval(() => undefined, 1_000);
