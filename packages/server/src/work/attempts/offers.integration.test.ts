import { type ErrorCode, newId, type Offered, SlipwayError } from "@slipway/contract";
import { describe, expect, it, onTestFinished } from "vitest";
import { openWorld } from "../../testing/world.ts";
import { takeBranch, takeOffer } from "./offers.ts";

const branch = "work";

async function setUp() {
  const site = await openWorld({ repository: "small" });
  onTestFinished(() => site[Symbol.asyncDispose]());
  const { repository, main, sandbox } = site;
  const life = {
    id: newId("att"),
    task: "list",
    number: 1,
    respawn: 0,
    part: 0,
    order: { branch, base: main } as Parameters<typeof takeOffer>[2]["order"],
  };
  const offered: Offered = {
    type: "offered",
    number: 1,
    commit: "0".repeat(40),
    tree: "0".repeat(40),
    main,
    changed: 1,
    tests: { changed: [], deleted: [] },
  };
  const taken = (bundle: AsyncIterable<Uint8Array>, change: Partial<Offered> = {}, mostBytes = 1024 ** 2) => {
    const options = { mostBytes, signal: AbortSignal.timeout(60_000) };
    return takeOffer(repository, { readOffer: () => bundle }, life, { ...offered, ...change }, options);
  };
  const offer = async (bundle: AsyncIterable<Uint8Array>, change: Partial<Offered> = {}) =>
    (await taken(bundle, change)).report;
  const work = async (files: Readonly<Record<string, string | Buffer | null>>) => {
    const tip = await sandbox.commit({ files, parents: [main] });
    return { tip, bundle: sandbox.bundle(tip, { needs: [main] }) };
  };
  const show = (bundle: AsyncIterable<Uint8Array>, mostBytes = 1024 ** 2) =>
    takeBranch(repository, { readBranch: () => bundle }, life, { mostBytes, signal: AbortSignal.timeout(60_000) });
  return { ...site, life, taken, offer, work, show };
}

async function* bytes(...parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

// biome-ignore lint/correctness/useYield: it fails before there is anything
async function* failing(code: ErrorCode): AsyncGenerator<Uint8Array> {
  throw new SlipwayError(code, "away");
}

describe("an offer", () => {
  it("is what was taken, whatever the run claims", async () => {
    const { offer, work, repository } = await setUp();
    const { tip, bundle } = await work({ "list.txt": "socks\n" });
    const report = await offer(bundle);
    expect(report).toMatchObject({ type: "candidate.offered", data: { offer: 1, commit: tip } });
    expect([...(await repository.candidates()).values()]).toEqual([tip]);
  });

  it("that is sent again is the same candidate", async () => {
    const { offer, work, sandbox, main, repository } = await setUp();
    const { tip, bundle } = await work({ "list.txt": "socks\n" });
    const first = await offer(bundle);
    const again = (async function* () {
      yield Buffer.from(`# v2 git bundle\n-${main} \n${tip} refs/heads/${branch}\n\n`);
      yield await sandbox.git(["pack-objects", "--stdout", "-q", "--revs"], `${tip}\n^${main}\n`);
    })();
    expect(await offer(again)).toEqual(first);
    expect((await repository.candidates()).size).toBe(1);
  });

  it.each([
    ["garbage", bytes("not a bundle at all")],
    ["empty", bytes()],
    ["cut off", bytes("# v2 git bundle\n")],
  ])("that is %s is refused with a finding", async (_, bundle) => {
    const { offer, repository } = await setUp();
    const report = await offer(bundle);
    expect(report).toMatchObject({ type: "candidate.refused", data: { findings: [{ gate: "offer" }] } });
    expect((await repository.candidates()).size).toBe(0);
  });

  it.each([
    ["without a change", {}],
    ["of nothing but the lock file that an install has left", { "package-lock.json": "{}\n" }],
  ])("%s offers the unchanged main and stores nothing", async (_, files) => {
    const { offer, work, main, repository } = await setUp();
    const { bundle } = await work(files);
    const commit = { commit: main, tree: await repository.treeOf(main) };
    expect(await offer(bundle)).toMatchObject({ type: "candidate.offered", data: commit });
    expect((await repository.candidates()).size).toBe(0);
  });

  it("that declares no change needs no bundle", async () => {
    const { offer, main } = await setUp();
    expect(await offer(failing("internal"), { commit: main, changed: 0 })).toMatchObject({
      type: "candidate.offered",
      data: { commit: main },
    });
  });

  it("with files meant for agents is refused", async () => {
    const { offer, work } = await setUp();
    const { bundle } = await work({ "list.txt": "socks\n", ".slipway/context/plan.md": "# Plan\n" });
    expect(await offer(bundle)).toMatchObject({ data: { findings: [{ file: ".slipway/context/plan.md" }] } });
  });

  it("with nothing but a newer main offers that main", async () => {
    const { offer, work, repository, main } = await setUp();
    const { tip, bundle } = await work({ "list.txt": "socks\n" });
    await repository.take(bundle, { id: newId("cnd"), ref: `refs/heads/${branch}`, base: main });
    await repository.moveMain(main, tip);
    expect(await offer(failing("internal"), { main: tip, commit: tip, changed: 0 })).toMatchObject({
      type: "candidate.offered",
      data: { commit: tip },
    });
  });

  it("with a secret and a large binary is refused with their paths and is not kept", async () => {
    const { offer, work, repository } = await setUp();
    const { bundle } = await work({ ".env": "TOKEN=1\n", "movie.bin": Buffer.alloc(400 * 1024) });
    const { data } = await offer(bundle);
    const findings = (data as unknown as { findings: { file: string }[] }).findings;
    expect(findings.map(({ file }) => file).sort()).toEqual([".env", "movie.bin"]);
    expect((await repository.candidates()).size).toBe(0);
  });

  it("with more bytes than its attempt may still send is refused, and its bytes count", async () => {
    const { taken, work, repository } = await setUp();
    const { bundle } = await work({ "list.txt": "socks\n" });
    const { report, bytes: sent } = await taken(bundle, {}, 20);
    const text = expect.stringContaining("more than 20 bytes");
    expect(report).toMatchObject({ type: "candidate.refused", data: { findings: [{ text }] } });
    expect(sent).toBeGreaterThan(20);
    expect((await repository.candidates()).size).toBe(0);
  });

  it("with another commit under the same number is refused, and the first one stays", async () => {
    const { offer, work, repository } = await setUp();
    const first = await work({ "list.txt": "socks\n" });
    await offer(first.bundle);
    const second = await work({ "list.txt": "shoes\n" });
    expect(await offer(second.bundle)).toMatchObject({ type: "candidate.refused" });
    expect([...(await repository.candidates()).values()]).toEqual([first.tip]);
  });

  it("that is missing is refused, and one whose sandbox is gone is left to the end of its run", async () => {
    const { offer } = await setUp();
    expect(await offer(failing("file_not_found"))).toMatchObject({ type: "candidate.refused" });
    await expect(offer(failing("sandbox_ended"))).rejects.toMatchObject({ code: "sandbox_ended" });
  });

  it("that finds no room on this machine is not refused, because no agent can fix that", async () => {
    const { offer } = await setUp();
    await expect(offer(failing("out_of_disk"))).rejects.toMatchObject({ code: "out_of_disk" });
  });
});

describe("a branch that is not offered yet", () => {
  it("is taken, is no candidate and is replaced by the next one", async () => {
    const { show, work, repository, life } = await setUp();
    for (const content of ["socks\n", "shoes\n"]) {
      const { tip, bundle } = await work({ "list.txt": content });
      expect(await show(bundle)).toMatchObject({ taken: tip, bytes: expect.any(Number) });
      expect(await repository.openBranches()).toEqual(new Map([[life.id, tip]]));
    }
    expect((await repository.candidates()).size).toBe(0);
    await repository.discard(life.id);
    expect((await repository.openBranches()).size).toBe(0);
  });

  it("may have left main before its attempt's base", async () => {
    const { show, work, repository, main, sandbox, life } = await setUp();
    const { tip, bundle } = await work({ "list.txt": "socks\n" });
    await repository.take(bundle, { id: newId("cnd"), ref: `refs/heads/${branch}`, base: main });
    await repository.moveMain(main, tip);
    const old = await sandbox.commit({ files: { "list.txt": "shoes\n" }, parents: [main] });
    expect(await show(sandbox.bundle(old, { needs: [main] }))).toMatchObject({ taken: old });
    expect(await repository.openBranches()).toEqual(new Map([[life.id, old]]));
  });

  it.each([
    ["garbage", bytes("not a bundle at all")],
    ["empty", bytes()],
    ["cut off", bytes("# v2 git bundle\n")],
  ])("is ignored if it is %s, and the last one stays", async (_, bundle) => {
    const { show, work, repository, life } = await setUp();
    const { tip, bundle: good } = await work({ "list.txt": "socks\n" });
    await show(good);
    expect((await show(bundle)).taken).toBeUndefined();
    expect(await repository.openBranches()).toEqual(new Map([[life.id, tip]]));
  });

  it("is ignored if its paths lead out of it, it has no known base or it has too many bytes", async () => {
    const { show, work, repository, sandbox, main } = await setUp();
    const blob = await sandbox.object("blob", "evil\n");
    const hostile = await sandbox.commit({ tree: await sandbox.tree([["100644", ".git", blob]]), parents: [main] });
    expect((await show(sandbox.bundle(hostile, { needs: [main] }))).taken).toBeUndefined();
    const rootless = await sandbox.commit({ files: { "list.txt": "socks\n" } });
    expect((await show(sandbox.bundle(rootless, {}))).taken).toBeUndefined();
    const { bundle } = await work({ "list.txt": "shoes\n" });
    const { taken, bytes: sent } = await show(bundle, 20);
    expect(taken).toBeUndefined();
    expect(sent).toBeGreaterThan(20);
    expect((await repository.openBranches()).size).toBe(0);
  });

  it("whose sandbox is gone is left to the end of its run", async () => {
    const { show } = await setUp();
    // biome-ignore lint/correctness/useYield: it fails before there is anything
    const gone = (async function* (): AsyncGenerator<Uint8Array> {
      throw new SlipwayError("sandbox_ended", "it has ended");
    })();
    await expect(show(gone)).rejects.toMatchObject({ code: "sandbox_ended" });
  });
});
