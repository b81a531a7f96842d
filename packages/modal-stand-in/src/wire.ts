/** The parts of the wire's messages that the stand-in reads. Everything that a message may hold is in the client. */

/** Of requests that name none. */
export const defaultEnvironment = "main";
export const creation = { lookUp: 0, ifMissing: 1, failIfExists: 2, overwrite: 3, ephemeral: 5 } as const;
export const resultStatus = {
  success: 1,
  failure: 2,
  terminated: 3,
  timeout: 4,
  internalFailure: 6,
  idleTimeout: 7,
} as const;
export const networkAccess = { open: 1, blocked: 2, allowlist: 3 } as const;
export const tunnelOfH2 = 1;
export const pipe = 1;
export const stderrDescriptor = { v1: 2, router: 1 } as const;

export interface Result {
  readonly status: number;
  readonly exitcode?: number;
  readonly exception?: string;
}

export interface NamedRequest {
  readonly deploymentName: string;
  readonly environmentName: string;
  readonly objectCreationType: number;
}

export interface SecretSource {
  readonly secretId?: string | undefined;
  readonly env?: { readonly contents: Readonly<Record<string, string>> } | undefined;
}

export interface NetworkAccess {
  readonly networkAccessType: number;
  readonly allowedCidrs: readonly string[];
  readonly allowedDomains: readonly string[];
}

export interface Tag {
  readonly tagName: string;
  readonly tagValue: string;
}

export interface VolumeMount {
  readonly volumeId: string;
  readonly mountPath: string;
  readonly readOnly: boolean;
  readonly subPath?: string | undefined;
}

export interface PtyInfo {
  readonly enabled: boolean;
  readonly winszRows: number;
  readonly winszCols: number;
}

export interface ReadinessProbe {
  readonly tcpPort?: number | undefined;
  readonly execCommand?: { readonly argv: readonly string[] } | undefined;
  readonly intervalMs?: number | undefined;
}

export interface PortSpec {
  readonly port: number;
  readonly unencrypted: boolean;
  readonly tunnelType?: number | undefined;
}

export interface Resources {
  readonly milliCpu: number;
  readonly milliCpuMax: number;
  readonly memoryMb: number;
  readonly memoryMbMax: number;
  readonly gpuConfig?: { readonly gpuType: string; readonly count: number } | undefined;
}

/** What a sandbox is to be. */
export interface Definition {
  readonly entrypointArgs: readonly string[];
  readonly imageId: string;
  readonly secretIds: readonly string[];
  readonly resources?: Resources | undefined;
  readonly timeoutSecs: number;
  readonly idleTimeoutSecs?: number | undefined;
  readonly workdir?: string | undefined;
  readonly ptyInfo?: PtyInfo | undefined;
  readonly volumeMounts: readonly VolumeMount[];
  readonly cloudBucketMounts: readonly unknown[];
  readonly openPorts?: { readonly ports: readonly PortSpec[] } | undefined;
  readonly networkAccess?: NetworkAccess | undefined;
  readonly inboundCidrAllowlist: readonly string[];
  readonly schedulerPlacement?: { readonly regions: readonly string[] } | undefined;
  readonly cloudProviderStr: string;
  readonly name?: string | undefined;
  readonly proxyId?: string | undefined;
  readonly includeOidcIdentityToken: boolean;
  readonly experimentalOptionsV2: Readonly<Record<string, string>>;
  readonly readinessProbe?: ReadinessProbe | undefined;
}

export interface SandboxCreateRequest {
  readonly appId: string;
  readonly definition: Definition;
  readonly tags: readonly Tag[];
  readonly secretSources?: readonly SecretSource[];
}

export interface SandboxRequest {
  readonly sandboxId: string;
}

export interface TunnelData {
  readonly host: string;
  readonly port: number;
  readonly unencryptedHost?: string;
  readonly unencryptedPort?: number;
  readonly containerPort: number;
}

export interface TaskRequest {
  readonly taskId: string;
}

export interface ExecRequest extends TaskRequest {
  readonly execId: string;
}

export interface ExecStartRequest extends ExecRequest {
  readonly commandArgs: readonly string[];
  readonly stdoutConfig: number;
  readonly stderrConfig: number;
  readonly timeoutSecs?: number | undefined;
  readonly workdir?: string | undefined;
  readonly secretIds: readonly string[];
  readonly secretSources: readonly SecretSource[];
  readonly env: Readonly<Record<string, string>>;
  readonly ptyInfo?: PtyInfo | undefined;
  readonly containerId: string;
}

export interface ReadRequest extends ExecRequest {
  readonly offset: number;
  readonly fileDescriptor: number;
}

export interface WriteRequest extends ExecRequest {
  readonly offset: number;
  readonly data: Uint8Array;
  readonly eof: boolean;
}

export interface WriteStreamMessage {
  readonly start?: (ExecRequest & { readonly offset: number }) | undefined;
  readonly data?: Uint8Array | undefined;
  readonly end?: object | undefined;
}

export interface ImageRequest {
  readonly appId: string;
  readonly forceBuild: boolean;
  readonly image: {
    readonly dockerfileCommands: readonly string[];
    readonly secretIds: readonly string[];
    readonly baseImages: readonly { readonly dockerTag: string; readonly imageId: string }[];
    readonly contextFiles: readonly unknown[];
  };
}
