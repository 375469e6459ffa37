// Package queryargs makes filters from the requests of a user or an agent, so that the flags of memctl
// and the arguments of the tools for agents have the same names and meanings. It also explains why
// nothing was found, if a mistake is likely.
package queryargs
