package words_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/build"
)

// The golden stores: testdata/format<n>.tar.gz, a store of 216 memories in three segments with states,
// each made once by the program that wrote segments of that format, and answers.txt, what the first of
// these programs found in it. They are never made again: every later program is held to them. Two of the answers are of
// the program that wrote terms2.tar.gz, whose terms are of version 2 and which ranks neighbours behind what has a word
// and what is excluded nowhere: those to "boat -bert" and "number12*".

// unpack makes a golden store.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "s")
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		switch {
		case err != nil:
		case h.Typeflag == tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		default:
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.WriteFile(path, b, 0o600), os.Chtimes(path, h.ModTime, h.ModTime))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// foundIn is what today's program finds, in the form of answers.txt.
func foundIn(t *testing.T, st *varve.Store) string {
	t.Helper()
	var b strings.Builder
	for _, q := range []string{"port3", "boats sailing to port1", "number12*", "tag:t1 anna", `"sails to port2"`,
		"boat -bert", "anna", "café zurich", "東京", "1970"} {
		hits, err := st.Search(t.Context(), varve.Query{Text: q, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s:", q)
		for _, h := range hits {
			fmt.Fprintf(&b, " %s %x", h.ID, h.Score)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// listed is the manifest of the view.
type listed struct {
	Format   int    `json:"format"`
	LSN      uint64 `json:"lsn"`
	Sum      uint64 `json:"sum"`
	Language string `json:"language"`
	Terms    int    `json:"terms,omitempty"`
	Next     uint64 `json:"next"`
	Segments []struct {
		Number uint64 `json:"number"`
		Bytes  int    `json:"bytes"`
		Sum    string `json:"sum"`
		State  string `json:"state"`
	} `json:"segments"`
	Check string `json:"check,omitempty"`
}

func manifestOf(t *testing.T, dir string) (m listed) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, folder, "manifest.json"))
	if err = errors.Join(err, json.Unmarshal(b, &m)); err != nil {
		t.Fatal(err)
	}
	return m
}

// write writes it, with its checksum.
func (m listed) write(t *testing.T, dir string) {
	t.Helper()
	m.Check = ""
	b, err := json.Marshal(m)
	if err == nil {
		m.Check = fmt.Sprintf("%016x", xxhash.Sum64(b))
		b, err = json.Marshal(m)
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, folder, "manifest.json"), b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// fromFiles expects that searches of a store read so many segments, which are files: none is made of documents.
func fromFiles(t *testing.T, st *varve.Store, segments int) {
	t.Helper()
	q := view.NewQuery(storetest.Inner(st).Engine, func() { t.Error("the files are damaged") })
	if err := q.With(t.Context(), func(s *view.Snapshot) error {
		var made []string
		for _, p := range s.Set.Parts() {
			if p.Name == "" {
				made = append(made, p.String())
			}
		}
		if n := len(s.Set.Parts()); n != segments || len(made) > 0 {
			t.Errorf("searches read %d segments, want %d; not from files: %q", n, segments, made)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// TestGoldenWords: stores of each format are found to the bit as by the program that made them, from
// their files, and what a rebuild makes of the documents are the bytes that a merge makes of the files.
func TestGoldenWords(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("testdata", "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for _, name := range []string{"format1", "format2", "terms2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, name)
			st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			fromFiles(t, st, 3)
			if got := foundIn(t, st); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				t.Errorf("%+v %v", f, err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			var merged []byte
			if name == "terms2" { // the others are made again with other terms
				var parts []*words.Part
				var ids []uint64
				for _, l := range manifestOf(t, dir).Segments {
					b, err := os.ReadFile(filepath.Join(dir, folder, fmt.Sprintf("%016x.seg", l.Number)))
					if err != nil || binary.LittleEndian.Uint32(b[8:]) != build.Format {
						t.Fatal(err)
					}
					seg, err := words.OpenSegment(b)
					if err != nil {
						t.Fatal(err)
					}
					var live []byte
					if l.State != "" {
						if live, err = os.ReadFile(filepath.Join(dir, folder, l.State)); err != nil {
							t.Fatal(err)
						}
					}
					p, err := words.ReadState(l.Number, seg, live)
					if err != nil {
						t.Fatal(err)
					}
					parts, ids = append(parts, p), append(ids, l.Number)
				}
				set, err := words.SetOf(parts)
				if err != nil || len(parts) != 3 {
					t.Fatal(len(parts), err)
				}
				w, _, err := set.Merge(t.Context(), ids)
				if err != nil {
					t.Fatal(err)
				}
				merged = w.Bytes()
			}
			st = open(t, dir)
			if err := st.Admin().RebuildIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			flush(t, st)
			if got := foundIn(t, st); got != want {
				t.Errorf("rebuilt:\n%s\nwant\n%s", got, want)
			}
			m := manifestOf(t, dir)
			if len(m.Segments) != 1 {
				t.Fatal(m)
			}
			made, err := os.ReadFile(filepath.Join(dir, folder, fmt.Sprintf("%016x.seg", m.Segments[0].Number)))
			if err != nil || merged != nil && !bytes.Equal(made, merged) {
				t.Errorf("a rebuild makes %d bytes, a merge %d others, %v", len(made), len(merged), err)
			}
		})
	}
}

// TestNewerWords: files of a newer format are not read; the documents answer, and a round makes the files
// again.
func TestNewerWords(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("testdata", "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(t *testing.T, dir string, m *listed){
		"manifest": func(_ *testing.T, _ string, m *listed) { m.Format = 99 },
		"segment": func(t *testing.T, dir string, m *listed) {
			l := &m.Segments[0]
			path := filepath.Join(dir, folder, fmt.Sprintf("%016x.seg", l.Number))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b = b[:binary.LittleEndian.Uint64(b[40+8*build.Sections:])]
			binary.LittleEndian.PutUint32(b[8:], build.Format+1)
			b = build.Sealed(b)
			l.Bytes, l.Sum = len(b), fmt.Sprintf("%016x", binary.LittleEndian.Uint64(b[len(b)-8:]))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, "format2")
			m := manifestOf(t, dir)
			change(t, dir, &m)
			m.write(t, dir)
			st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := foundIn(t, st); got != string(b) {
				t.Errorf("%s\nwant\n%s", got, b)
			}
			found := 0
			for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				if found++; !errors.Is(f.Err, varve.ErrNewerFormat) {
					t.Errorf("%+v", f)
				}
			}
			if err := st.Close(); err != nil || found != 1 {
				t.Error(found, err)
			}
			st = open(t, dir)
			flush(t, st)
			if now := manifestOf(t, dir); now.Format != 2 || now.Terms != 2 || len(now.Segments) != 1 {
				t.Errorf("%+v", now)
			}
			if got := foundIn(t, st); got != string(b) {
				t.Errorf("made again:\n%s\nwant\n%s", got, b)
			}
		})
	}
}
