export { openObjectStorage } from "./open.ts";
export {
  parseS3,
  type S3Place,
  type StorageSettings,
  type StorageVariables,
  storageMistakes,
  storageRules,
  storageSettings,
} from "./settings.ts";
export type { ObjectContent, ObjectInfo, ObjectStorage, StorageCall } from "./storage.ts";
