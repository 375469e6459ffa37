package index

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const writtenLine = `{"filepath":"memories/id-1.json","created_at":"2026-01-02T03:04:05.000006Z","updated_at":"2026-01-02T03:04:05Z","quickrecal_score":0.85,"content_hash":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":1043,"dimension":768,"vector_id":16,"session_id":"s1","expires_at":"2026-01-02T03:04:05.000006Z"}`

// TestQuickLine: ParseLine accepts what QuickLine accepts, with the same values, and QuickLine
// recognizes lines as they are written.
func TestQuickLine(t *testing.T) {
	if !QuickLine([]byte(writtenLine), "memories", "id-1", 1043, 768, 17) {
		t.Fatal("it does not know a line as it is written")
	}
	for _, other := range []bool{
		QuickLine([]byte(writtenLine), "memories", "id-2", 1043, 768, 17),
		QuickLine([]byte(writtenLine), "assemblies", "id-1", 1043, 768, 17),
		QuickLine([]byte(writtenLine), "memories", "id-1", 1042, 768, 17),
		QuickLine([]byte(writtenLine), "memories", "id-1", 1043, 767, 17),
		QuickLine([]byte(writtenLine), "memories", "id-1", 1043, 768, 15),
	} {
		if other {
			t.Error("it passes what the line does not say")
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(writtenLine)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", "0", "9", "1", "-", ".", "e", `"`, `\`, "}", ",", "\x00", "\xff", "Z", "f", "00"}).Draw(t, "with")
			b = append(b[:at:at], with+string(b[at+rapid.IntRange(0, 1).Draw(t, "cut"):])...)
		}
		if !QuickLine(b, "memories", "id-1", 1043, 768, 17) {
			return
		}
		e, err := ParseLine(b)
		if err != nil || e.Filepath != "memories/id-1.json" || e.Size != 1043 || e.Dimension != 768 || e.VectorID < 0 || e.VectorID > 17 || e.Deleted || e.Version != 0 || e.Mtime != 0 {
			t.Fatalf("%s: %+v, %v", b, e, err)
		}
	})
	for _, old := range []string{"03:04:05Z", "0.85", "1043", "768"} {
		if QuickLine([]byte(strings.Replace(writtenLine, old, "x", 1)), "memories", "id-1", 1043, 768, 17) {
			t.Error(old)
		}
	}
}

func BenchmarkQuickLine(b *testing.B) {
	line := []byte(writtenLine)
	b.ReportAllocs()
	for b.Loop() {
		if !QuickLine(line, "memories", "id-1", 1043, 768, 17) {
			b.Fatal("no")
		}
	}
}
