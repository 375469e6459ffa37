package importer

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The nesting of lists in lists that are read is limited: otherwise the time would be quadratic in the
// size of the file.
func TestNestedLists(t *testing.T) {
	t.Parallel()
	const depth = 4000
	long := strings.Repeat("x", 64<<10)
	for name, text := range map[string]string{
		"arrays.json":   strings.Repeat("[", depth) + `"` + long + `"` + strings.Repeat("]", depth),
		"memories.json": strings.Repeat(`{"memories":[`, depth) + `"` + long + `"` + strings.Repeat("]}", depth),
		"lines.jsonl":   strings.Repeat(`{"messages":[`, depth) + `"` + long + `"` + strings.Repeat("]}", depth),
	} {
		began := time.Now()
		g := drainSource(t, OpenLines(strings.NewReader(text), name, Options{}))
		if len(g.items) != 0 || len(g.problems) != 1 || !g.problems[0].LeftOut || !strings.Contains(g.problems[0].Reason, "deep") {
			t.Errorf("%s: %d items, %v", name, len(g.items), g.problems)
		}
		_, _ = Detect(tree(t, name, text))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	deep := `[[[{"messages":[{"role":"user","content":"ok"}]}]]]`
	if g := drainSource(t, OpenLines(strings.NewReader(deep), "deep.json", Options{})); len(g.items) != 1 {
		t.Errorf("%d items, %v", len(g.items), g.problems)
	}
}

// endless is a string that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if e.read += len(p); e.read > 1<<30 {
		return 0, errors.New("the whole stream was read")
	}
	return len(p), nil
}

// An element of an array that never ends does not use up the memory.
func TestEndlessElement(t *testing.T) {
	t.Parallel()
	in := &endless{}
	g := drainSource(t, OpenLines(io.MultiReader(strings.NewReader(`[`+mem("a")+`,"`), in), "-", Options{MaxBytes: 1 << 20}))
	g.expectIDs(t, "a")
	g.expect(t, "too large -[1]")
	if in.read > 16<<20 {
		t.Errorf("%d bytes were read", in.read)
	}
}

// The first record of a document of many small values is yielded without using many times the document's
// size in memory.
func TestManyElements(t *testing.T) {
	text := `{"memories":[1` + strings.Repeat(",1", 2<<20) + `]}`
	src := OpenLines(strings.NewReader(text), "m.json", Options{})
	for _, err := range src.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.TotalAlloc > 200<<20 {
		t.Errorf("%d bytes were allocated for the first of %d values", m.TotalAlloc, 2<<20)
	}
}
