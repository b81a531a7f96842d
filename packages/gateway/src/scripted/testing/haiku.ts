import { isSideCall, type ScriptedProgram, sideAnswer } from "@slipway/gateway/scripted";

const lines = ["An old silent pond", "A frog jumps into the pond", "Splash! Silence again"];

/** Writes a haiku, counts its lines, and says what came out. */
export const haiku: ScriptedProgram = (request) => {
  if (isSideCall(request)) return sideAnswer(request);
  switch (request.step) {
    case 0:
      return { text: "I write a haiku.", actions: [{ write: "haiku.txt", content: `${lines.join("\n")}\n` }] };
    case 1:
      return { actions: [{ run: "wc -l haiku.txt" }] };
    default: {
      const [count] = request.results;
      const isWhole = count?.text.includes("3 haiku.txt");
      return { text: isWhole ? "The haiku has its three lines." : "Something is wrong with the haiku." };
    }
  }
};
