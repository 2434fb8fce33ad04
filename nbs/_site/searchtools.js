/* Shows what a query finds. It adds up what the index says of its words; `search.py` makes that index, and has the same
   functions by the same names. It stands in place of Sphinx's own search, which wants every word and hardly ranks. */
"use strict"

const Search = {
  setIndex(index) {
    const input = document.createElement("input"), out = document.createElement("div")
    Object.assign(input, {type: "search", className: "search-query", placeholder: "What are you looking for?",
                          value: new URLSearchParams(location.search).get("q") || ""})
    input.setAttribute("aria-label", "Search")
    const title = document.createElement("h1")
    title.textContent = "Search"
    document.getElementById("search-results").append(title, input, out)
    const show = () => out.replaceChildren(...this.results(index, input.value))
    input.addEventListener("input", () => {
      history.replaceState(null, "", "?q=" + encodeURIComponent(input.value))
      show()
    })
    show()
  },

  terms(text, stop) {
    const res = []
    for (const [chain] of text.matchAll(/\w+(?:[-.]\w+)*/g)) {
      const words = chain.match(/\w+/g)
      for (const w of words) {
        const parts = (w.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+/g) || []).map(p => p.toLowerCase())
        res.push(...new Set([w.toLowerCase(), ...parts]))
      }
      if (words.length > 1) res.push(words.join("").toLowerCase())
    }
    return res.filter(w => !stop.has(w)).map(w => this.stem(w))
  },

  exactly(text) { return "=" + text.replace(/[\W_]/g, "").toLowerCase() },

  wanted(query, stop) {
    const typed = (query.toLowerCase().match(/\w+/g) || []).filter(w => !stop.has(w))
    const pairs = typed.slice(1).map((b, i) => this.stem(typed[i] + b))
    return [...new Set([...this.terms(query, stop), ...pairs, this.exactly(query)])]
  },

  rank(index, query) {
    const score = new Map(), known = index.words
    for (const w of this.wanted(query, new Set(index.stop))) {
      const near = Object.hasOwn(known, w) ? [w] : w.length > 3 ? Object.keys(known).filter(k => k.startsWith(w)) : []
      for (const k of near)
        for (let i = 0; i < known[k].length; i += 2)
          score.set(known[k][i], (score.get(known[k][i]) || 0) + known[k][i+1]/near.length)
    }
    return [...score.keys()].sort((a, b) => score.get(b) - score.get(a) || a - b)
  },

  stem(word) { return (this.stemmer ??= new Stemmer()).stemWord(word) },

  results(index, query) {
    const found = this.rank(index, query).slice(0, 30), list = document.createElement("ul")
    list.className = "search"
    for (const i of found) {
      const [url, kind, title, about] = index.pages[i], item = document.createElement("li")
      const [link, where, says] = ["a", "span", "p"].map(tag => document.createElement(tag))
      link.href = url
      link.textContent = title
      const module = url.split("#")[1]?.slice(0, -title.length - 1)   // names of the reference may be equal
      where.textContent = kind === "reference" && module ? `${index.kinds[kind]} · ${module}` : index.kinds[kind]
      says.textContent = about.replaceAll("`", "")
      item.append(link, where, says)
      list.append(item)
    }
    const none = document.createElement("p")
    none.textContent = query.trim() ? "Nothing was found. Fewer or other words may help." : ""
    return found.length ? [list] : [none]
  },
}
