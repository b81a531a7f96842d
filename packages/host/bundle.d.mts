export function bundleProgram(name: string, entryPoint: string): Promise<string>;
