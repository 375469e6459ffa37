package memstore

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/proofs"
)

func realFiles(t *testing.T, folder, pattern string, want int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(proofs.SharedData(t, folder), pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != want {
		t.Errorf("%s has %d files, not %d", folder, len(files), want)
	}
	return files
}

func TestSynthiansFiles(t *testing.T) {
	proofs.OneGoroutine(t)
	zero := 0
	for _, file := range realFiles(t, "synthians-6ac7868", "mem_*.json", 358) {
		m := checkRealFile(t, file)
		if len(m.Embedding) != 768 {
			t.Errorf("%s: %d dimensions", file, len(m.Embedding))
		}
		if !slices.ContainsFunc(m.Embedding, func(f float32) bool { return f != 0 }) {
			zero++
		}
	}
	if zero != 25 {
		t.Errorf("%d zero vectors, not 25", zero)
	}
}

func TestLegacyFiles(t *testing.T) {
	for _, file := range realFiles(t, "lucidia-legacy", "*.json", 64) {
		m := checkRealFile(t, file)
		if len(m.Embedding) == 0 || m.QuickRecalScore == 0 || m.Timestamp.IsZero() {
			t.Errorf("%s: %+v", file, m)
		}
	}
}

// checkRealFile reads a file, changes one field, writes, and compares every member with the source as
// encoding/json and big.Rat read it.
func checkRealFile(t *testing.T, file string) *Memory {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(src, DecodeOptions{})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	m.AccessCount += 5
	doc, line, err := Prepare(m, nil, now, PrepareOptions{})
	if err != nil || !json.Valid(line) {
		t.Fatalf("%s: %v", file, err)
	}
	was, is := members(t, src), members(t, doc)
	for name, raw := range was {
		at := name
		switch name {
		case "significance":
			at = "quickrecal_score"
		case "access_count":
			continue
		}
		got, ok := is[at]
		if slices.Contains([]string{"timestamp", "last_access_time", "quickrecal_updated"}, name) && string(raw) != "null" {
			if !sameInstant(t, raw, got) {
				t.Errorf("%s: %s: %s became %s", file, name, raw, got)
			}
		} else if name == "embedding" && raw[0] == '"' && samePrinted(raw, got) {
			// a printed vector has become a list of the same numbers
		} else if !ok || !bytes.Equal(raw, got) {
			t.Errorf("%s: %s: %.80s became %.80s", file, name, raw, got)
		}
		delete(is, at)
	}
	for _, name := range []string{"access_count", "created_at", "updated_at"} {
		if _, ok := is[name]; !ok {
			t.Errorf("%s: no %s", file, name)
		}
		delete(is, name)
	}
	if len(is) != 0 {
		t.Errorf("%s: unexpected members %v", file, is)
	}
	again, err := Decode(doc, DecodeOptions{ID: m.ID})
	if err != nil || !again.Equal(m) {
		t.Errorf("%s reads back differently: %v", file, err)
	}
	// The same from the fields alone, without the text.
	bare := *m
	bare.source = nil
	anew, err := bare.Encode(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Decode(anew, DecodeOptions{ID: m.ID}); err != nil || !again.Equal(m) {
		t.Errorf("%s written anew reads back differently: %v", file, err)
	}
	checkUnmarshalled(t, file, was, m)
	return m
}

func checkUnmarshalled(t *testing.T, file string, was map[string]json.RawMessage, m *Memory) {
	t.Helper()
	var list []float32
	if was["embedding"][0] == '[' {
		if err := json.Unmarshal(was["embedding"], &list); err != nil {
			t.Fatal(err)
		}
	} else {
		var s string
		if err := json.Unmarshal(was["embedding"], &s); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte("["+strings.Join(strings.Fields(strings.Trim(s, "[]")), ",")+"]"), &list); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(list, m.Embedding) {
		t.Errorf("%s: the embedding differs", file)
	}
	var content string
	if err := json.Unmarshal(was["content"], &content); err != nil || content != m.Content {
		t.Errorf("%s: the content differs", file)
	}
}

func sameInstant(t *testing.T, was, is []byte) bool {
	t.Helper()
	var s string
	if err := json.Unmarshal(is, &s); err != nil || !strings.HasSuffix(s, "Z") || !jsondoc.NormalTime(is) {
		return false
	}
	got, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return false
	}
	if was[0] == '"' {
		text := strings.Trim(string(was), `"`)
		want, err := time.Parse("2006-01-02T15:04:05.999999-07:00", text)
		if err != nil {
			want, err = time.Parse("2006-01-02T15:04:05.999999", text)
		}
		return err == nil && want.Equal(got)
	}
	// Within half a microsecond, plus the error of the float64.
	want, _ := new(big.Rat).SetString(string(was))
	diff := new(big.Rat).Sub(want, big.NewRat(got.UnixMicro(), 1e6))
	return diff.Abs(diff).Cmp(big.NewRat(8, 1e7)) < 0
}
