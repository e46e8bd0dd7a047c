/**
 * Current route: the address after `#/`, as parts and a query: `#/decisions/12?rack=r3`. Independent of the path that
 * serves the page.
 */
class Route {
  private current = $state.raw(read())

  constructor() {
    addEventListener('hashchange', () => (this.current = read()))
  }

  get page(): string {
    return this.current.parts[0] ?? ''
  }

  get name(): string | null {
    return this.current.parts[1] ?? null
  }

  get query(): Record<string, string> {
    return this.current.query
  }
}

function read(): { parts: string[]; query: Record<string, string> } {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    })
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) }
}

/** Link to a page, to an object of it, and with a query. */
export function href(page: string, name: string | null = null, query: Record<string, string> = {}): string {
  const path =
    '#/' +
    [page, name]
      .filter((part) => part !== null)
      .map(encodeURIComponent)
      .join('/')
  const text = new URLSearchParams(query).toString()
  return text ? `${path}?${text}` : path
}

export const route = new Route()
