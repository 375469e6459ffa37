// Package doctorcmd has memctl doctor: one text with what a maintainer asks for first, which may be published.
//
// # What is in it
//
// Numbers, versions, the kinds of errors, and names that the program itself has. Not in it are contents, ids, keys,
// sessions, names of projects, agents, notes and users, hosts, addresses of services, and paths: the package's redactor
// replaces them in every text that comes from an error. A value of a setting is shown if it is a number, a boolean, or
// one of a fixed list.
//
// # Invariants
//
// Nothing is written into the store, and nothing is waited for beyond a few seconds. Each part is gathered by itself,
// and one that fails says why: a report of a store that cannot be opened has all other parts.
package doctorcmd
