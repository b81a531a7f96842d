export { deployCeiling, imageBuildMs, sandboxCost } from "./cost.ts";
export { type Deployment, type DeployOptions, deploy } from "./deploy.ts";
export { findDeployment, keepDeployment } from "./record.ts";
export { trialLimits } from "./trial.ts";
