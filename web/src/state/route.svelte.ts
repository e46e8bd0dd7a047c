/** Current route: the parts of the address after `#/`. Independent of the path that serves the page. */
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

/** Link to a route. */
export function href(...parts: string[]): string {
  return '#/' + parts.map(encodeURIComponent).join('/')
}

export const route = new Route()
