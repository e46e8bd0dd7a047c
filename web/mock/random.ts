/** Generator of numbers in [0, 1) from a seed and any number of parts, identical on every machine. */
export function random(seed: number, ...parts: number[]): () => number {
  let state = seed >>> 0
  for (const part of parts) state = mix(state ^ mix(part + 0x9e3779b9))
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    return mix(state) / 4294967296
  }
}

function mix(value: number): number {
  let x = value >>> 0
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
  return (x ^ (x >>> 15)) >>> 0
}
