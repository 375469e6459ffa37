// Package queryargs makes filters of what a person or an agent asks for: the flags of memctl and the arguments of the
// tools for agents say the same, in the same words. It also says why nothing was found, where that looks like a
// mistake.
package queryargs
