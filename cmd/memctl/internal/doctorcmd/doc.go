// Package doctorcmd has memctl doctor: it prints one report with what a maintainer of Varve asks for first,
// such that a user may publish it.
//
// # What is in it
//
// The report has numbers, versions, kinds of errors, and names that the program itself uses. It has no
// contents, ids, keys, sessions, names of projects, agents, notes and users, hosts, addresses of services, or
// paths: the package's redactor replaces them in every text that comes from an error. The value of a setting is
// shown if it is a number, a boolean, or one of a fixed list.
//
// # Invariants
//
// doctor writes nothing into the store, and waits for nothing longer than a few seconds. Each part of the
// report is gathered separately, and a part that fails contains the reason: the report of a store that cannot
// be opened has all other parts.
package doctorcmd
