/** Where the reader is: the parts after `#/`. Works wherever the page is served from. */
class Route {
  parts = $state.raw<string[]>(read())

  constructor() {
    addEventListener('hashchange', () => (this.parts = read()))
  }

  get page(): string {
    return this.parts[0] ?? ''
  }

  get name(): string | null {
    return this.parts[1] ?? null
  }
}

function read(): string[] {
  return location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '')
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    })
}

export function to(...parts: string[]): string {
  return '#/' + parts.map(encodeURIComponent).join('/')
}

export const route = new Route()
