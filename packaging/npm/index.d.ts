export type Program = 'sluice-server' | 'sluice' | 'sluice-journal' | 'sluice-import'
export const programs: readonly Program[]
/** The path of a program that can be started; it says so if this machine cannot run it. */
export function program(name: Program): string
