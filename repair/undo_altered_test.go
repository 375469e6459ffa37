package repair_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestUndoOfAnAlteredManifest: an undo does not leave out in silence what a line says that was changed
// since it was written. A line that was cut, with nothing behind it, is left out: its change had not
// begun.
func TestUndoOfAnAlteredManifest(t *testing.T) {
	t.Parallel()
	lines := func(b []byte) (n int) { return bytes.Count(b, []byte("\n")) }
	alter := map[string]func(line []byte) []byte{
		"a space":   func(line []byte) []byte { return bytes.Replace(line, []byte(":"), []byte(": "), 1) },
		"garbage":   func(line []byte) []byte { return append(bytes.Repeat([]byte{0}, len(line)-1), '\n') },
		"its end":   func(line []byte) []byte { return append(line[:len(line)-9:len(line)-9], '\n') },
		"very long": func([]byte) []byte { return []byte(strings.Repeat("x", 200<<10) + "\n") },
	}
	for name, change := range alter {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, id := repaired(t)
			path := file(dir, "quarantine/repair-"+id+".undo.jsonl")
			whole := bytesOf(t, path)
			for n := 2; n <= lines(whole); n++ {
				if n == lines(whole) && name != "a space" {
					continue // the repair was cut there
				}
				var b []byte
				at := 0
				for line := range bytes.Lines(whole) {
					if at++; at == n {
						line = change(line)
					}
					b = append(b, line...)
				}
				write(t, path, b)
				refused(t, dir, id, fmt.Sprintf("line %d was changed since", n))
			}
			write(t, path, whole)
		})
	}
	dir, rotten, id := repaired(t)
	path := file(dir, "quarantine/repair-"+id+".undo.jsonl")
	whole := bytesOf(t, path)
	write(t, path, append(whole[:len(whole):len(whole)], `{"n":99,"do":"restore","path":"memories/0`...))
	undone(t, dir, id, rotten)
}
