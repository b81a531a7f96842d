import process from "node:process";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { expect, test } from "vitest";
import { describeProvider } from "../../../conformance/index.ts";
import { deploy } from "../../../deploy/index.ts";
import { inspectModal } from "../doctor/inspect.ts";
import { makeScratch, modalSettingsOf, modalSubject, openByEnvironment, removeAll } from "./testing.ts";

// `npm run test:modal`: on the account of the environment, a real one or the stand-in's.

// The stand-in's tunnels have an authority of their own, which a browser would be told to trust.
const { tunnelCa } = modalSettingsOf(process.env).modal;
if (tunnelCa !== undefined) setDefaultCACertificates([...getCACertificates(), tunnelCa]);

test("the account can be used", async () => {
  const findings = await inspectModal(modalSettingsOf(process.env).modal);
  expect(findings.filter(({ status }) => status === "fail")).toEqual([]);
});

test("a deploy proves it, and leaves no sandbox and no snapshot", async () => {
  using scratch = makeScratch();
  await using provider = await openByEnvironment(process.env, scratch.stateDir);
  const { failure, left, previewOrigin } = await deploy(provider, { tunnelCa });
  expect(failure).toBeUndefined();
  expect(left).toEqual([]);
  expect(previewOrigin).toMatch(/^https:\/\//);
  expect(await provider.list()).toEqual([]);
  expect(await provider.snapshots.list()).toEqual([]);
  await removeAll(provider);
});

describeProvider("the provider on Modal", modalSubject(process.env));
