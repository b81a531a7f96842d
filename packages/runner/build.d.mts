export function buildRunner(): Promise<string>;
