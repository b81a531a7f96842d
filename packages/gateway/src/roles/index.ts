export { AnswerError, InvalidAnswerError } from "./errors.ts";
export type { GatewayAddress } from "./models.ts";
export type { Image, Question, StructuredQuestion } from "./question.ts";
export { createRoles, type Roles } from "./roles.ts";
