import { startScriptedModel } from "@slipway/gateway/scripted";

const faults = ["hang", "hangStream", undefined] as const;
let asked = 0;
const allAsked = Promise.withResolvers<void>();

const model = await startScriptedModel({
  programs: {
    stuck: ({ prompt }) => {
      if (++asked === faults.length) allAsked.resolve();
      const fault = faults.find((name) => name === prompt);
      return { text: "An answer that takes an hour.", paceMs: 3_600_000, ...(fault && { fault }) };
    },
  },
  listen: { host: "127.0.0.1", port: 0 },
});
for (const fault of faults) {
  const messages = [{ role: "user", content: fault ?? "paced" }];
  const body = JSON.stringify({ model: "stuck", max_tokens: 100, stream: true, messages });
  fetch(`${model.baseUrl}/v1/messages`, { method: "POST", body })
    .then(
      (response) => response.text(),
      () => undefined,
    )
    .catch(() => undefined);
}
await allAsked.promise;
await model.close();
console.log("closed");
