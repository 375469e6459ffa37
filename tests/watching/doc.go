// Package watching tests watches, events and following another process.
package watching
