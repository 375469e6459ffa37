package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// vocabulary generates texts in which a few words are frequent, as in texts that people write.
type vocabulary struct {
	r     *rand.Rand
	words []string
}

// newVocabulary returns a vocabulary that always has the same words; the texts depend on stream.
func newVocabulary(stream uint64) *vocabulary {
	v := &vocabulary{r: rand.New(rand.NewPCG(1, 1)), words: make([]string, 20_000)}
	for i := range v.words {
		w := make([]byte, 2+v.r.IntN(8))
		for j := range w {
			w[j] = byte('a' + v.r.IntN(26))
		}
		v.words[i] = string(w)
	}
	v.r = rand.New(rand.NewPCG(2, stream))
	return v
}

// text returns a text of at least size bytes.
func (v *vocabulary) text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(v.words[int(v.r.ExpFloat64()*2000)%len(v.words)])
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// memories measures the tools that the reference server does not have, on a store of n memories. remember uses ten
// keys, so that the size of the store stays the same.
func memories(ctx context.Context, memctl, dir string, n int, each time.Duration) ([]times, error) {
	v := newVocabulary(uint64(time.Now().UnixNano()))
	store := filepath.Join(dir, fmt.Sprint("memories-", n))
	if _, err := os.Stat(store); err != nil {
		if err := fill(ctx, memctl, store, n, newVocabulary(0)); err != nil {
			return nil, err
		}
	}
	s, err := start(ctx, nil, memctl, "mcp", "--store", store, "--tools", "graph,memory")
	if err != nil {
		return nil, err
	}
	// The graph is looked for in the background first; that is over then.
	if err := s.tool("search_nodes", `{"query":"no such thing"}`); err != nil {
		return nil, err
	}
	var all []times
	for _, k := range []struct {
		name string
		args func(i int) string
	}{
		{"recall", func(int) string { return fmt.Sprintf(`{"query":%q}`, v.text(12)) }},
		{"recent", func(int) string { return `{}` }},
		{"remember", func(i int) string { return fmt.Sprintf(`{"text":%q,"key":"bench %d"}`, v.text(300), i%10) }},
	} {
		t, err := repeat(s, k.name, each, k.args)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, s.end()
}

// fill creates a store of n memories of 300 bytes.
func fill(ctx context.Context, memctl, store string, n int, v *vocabulary) error {
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return err
	}
	lines := store + ".jsonl"
	f, err := os.Create(lines)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, `{"id":"m%07d","content":%q}`+"\n", i, v.text(300))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	half := store + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", half}, {"import", lines, "--store", half}} {
		if out, err := exec.CommandContext(ctx, memctl, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("memctl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return errors.Join(os.Remove(lines), os.Rename(half, store))
}
