// Package working is what an agent has in hand right now.
package working
