export { answerError } from "./answer.ts";
export { createRunChannel, type RunChannel } from "./channel.ts";
