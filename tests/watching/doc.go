// Package watching tests watches, events, and the way in which a process follows the log of others.
package watching
