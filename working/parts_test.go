package working

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

// A document or an entry with as many parts as the text has room for is refused before they are decoded:
// 16 MiB of them took 3 to 4 GB. The number of lists and objects in a user's value is not limited.
func TestMostParts(t *testing.T) {
	const size = 4 << 20
	for name, body := range map[string]string{
		"changes":     "[" + strings.Repeat("{},", size/3) + "{}]\n",
		"lines":       strings.Repeat("[]\n", size/3),
		"notes":       `{"scope":"global","scratchpad":[` + strings.Repeat("{},", size/3) + "{}]}",
		"checkpoints": `{"scope":"global","checkpoints":[` + strings.Repeat("{},", size/3) + "{}]}",
	} {
		text := []byte(body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeLogEntry([]byte(`{"time":1,"tick":1,"version":1}`), text)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errs.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: refusing it took %d bytes", name, n)
		}
	}
	value := "[" + strings.Repeat("{},", size/3) + "{}]"
	d := &Delta{Changes: []Change{{Kind: ChangePut, Name: ValueName("k"), Value: []byte(value), Deadline: Forever}}}
	body, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e := &LogEntry{Changes: []*Delta{d}}
	if _, err := DecodeLogEntry(e.Head(), append(body, '\n')); err != nil {
		t.Error(err)
	}
}
