package words_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view/words"
)

// first makes a segment one of the first format, which has no columns and no orders.
func first(b []byte) []byte {
	const sections, header, older = 14, 296, 168
	le := binary.LittleEndian
	out := append([]byte(nil), b[:40]...)
	le.PutUint32(out[8:], 1)
	for i := range sections + 1 {
		out = le.AppendUint64(out, le.Uint64(b[40+8*i:])-header+older)
	}
	out = append(out, make([]byte, older-len(out))...)
	out = append(out, b[header:le.Uint64(b[40+8*sections:])]...)
	end := len(out)
	for at := 0; at < end; at += 64 << 10 {
		out = le.AppendUint64(out, xxhash.Sum64(out[at:min(at+64<<10, end)]))
	}
	d := xxhash.NewWithSeed(uint64(end))
	_, _ = d.Write(out[end:])
	return le.AppendUint64(out, d.Sum64())
}

// TestFirstFormat: files of the first format are searched, listings read the index, and the next round
// makes them again.
func TestFirstFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := with(t, dir, older())
	put(t, st, 0, 300)
	flush(t, st)
	want := answers(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	m := manifestOf(t, dir)
	if len(m.Segments) == 0 {
		t.Fatal("there is no segment")
	}
	for i := range m.Segments {
		s := &m.Segments[i]
		name := filepath.Join(dir, folder, fmt.Sprintf("%016x.seg", s.Number))
		b, err := os.ReadFile(name)
		if err != nil || s.State != "" {
			t.Fatal(err, s.State)
		}
		b = first(b)
		s.Bytes, s.Sum = len(b), fmt.Sprintf("%016x", binary.LittleEndian.Uint64(b[len(b)-8:]))
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.write(t, dir)
	sessions := func(st *varve.Store) bool {
		_, ok, err := storetest.Inner(st).Engine.Tune().Orders.(*words.Orders).Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := answers(t, st); got != want || sessions(st) {
		t.Errorf("the first format, %v:\n%s\nwant\n%s", sessions(st), got, want)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v %v", f, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = open(t, dir)
	put(t, st, 0, 1)
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !sessions(st) {
		t.Error("a round has left the first format")
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v %v", f, err)
	}
}
