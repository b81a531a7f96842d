import { startScriptedModel } from "@slipway/gateway/scripted";
import { haiku } from "./haiku.ts";

/** Asks the program for its first turn, as an agent with a shell does. */
export async function firstTurn(): Promise<unknown> {
  await using model = await startScriptedModel({ programs: { haiku }, listen: { host: "127.0.0.1", port: 0 } });
  const response = await fetch(`${model.baseUrl}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "haiku",
      max_tokens: 1000,
      messages: [{ role: "user", content: "Write something" }],
      tools: [{ name: "Bash", input_schema: { type: "object" } }],
    }),
  });
  return response.json();
}
