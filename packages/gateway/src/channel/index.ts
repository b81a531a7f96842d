export { answerError } from "./answer.ts";
export { createRunChannel, type RunChannel, type RunChannelParts } from "./channel.ts";
export { systemTimers, type Timers } from "./timers.ts";
