// Package skim steps through a JSON text that is known to be well-formed, or whose
// reader goes by what it finds only where that is harmless: it looks at no more than it
// has to, and does not judge.
package skim
