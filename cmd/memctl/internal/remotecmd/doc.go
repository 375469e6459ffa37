// Package remotecmd has the commands of a store's copy elsewhere: memctl remote and memctl clone.
package remotecmd
