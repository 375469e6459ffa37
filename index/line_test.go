package index

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/errs"
)

const contractLine = `{"filepath":"memories/id-1.json","created_at":"2026-01-02T03:04:05.000006Z","updated_at":"2026-01-02T03:04:05.000006Z","quickrecal_score":0.85,"content_hash":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":1043,"mtime":1767323045000006,"version":17,"dimension":768,"vector_id":16,"session_id":"s1","expires_at":"2026-01-02T03:04:05.000006Z"}`

func TestLineRoundTrip(t *testing.T) {
	e, err := ParseLine([]byte(contractLine))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.AppendMemory(nil); err != nil || string(got) != contractLine {
		t.Errorf("got  %s\nwant %s, %v", got, contractLine, err)
	}
	short := e
	short.Version, short.Mtime = 0, 0
	line, _ := short.AppendMemory(nil)
	if got, err := Finish(nil, line, 17, 1767323045000006, 0); err != nil || string(got) != contractLine {
		t.Errorf("Finish: %s, %v", got, err)
	}
	for _, bad := range []string{contractLine, `{}`, string(line[:len(line)-1]),
		strings.Replace(string(line), "{", "{ ", 1), strings.Replace(string(line), "1043", "", 1),
		strings.Replace(string(line), "1043", "1043 ", 1)} {
		if got, err := Finish(nil, []byte(bad), 1, 1, 0); !errors.Is(err, errLine) {
			t.Errorf("Finish(%s) = %s, %v", bad, got, err)
		}
	}
}

func TestLineRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab,\"\\:{}\x00\x1f\n\u2028é😀")))
		at := rapid.Map(rapid.Int64Range(-62135596800, 253402300799),
			func(s int64) time.Time { return time.Unix(s, s%1e9*7%1e9+(s%1e9*7%1e9>>63&1e9)).UTC() })
		e := Entry{
			Filepath: text.Draw(t, "path"), SessionID: text.Draw(t, "session"), CreatedAt: at.Draw(t, "c"),
			UpdatedAt: at.Draw(t, "u"),
			ExpiresAt: at.Draw(t, "e"), Score: rapid.Float64().Draw(t, "score"), Size: rapid.Int64Min(0).Draw(t, "size"),
		}
		if e.Score == 0 {
			e.Score = 0 // not -0
		}
		e.Dimension = rapid.IntRange(UnknownDimension, 70000).Draw(t, "dimension")
		e.VectorID = rapid.Int64Min(0).Draw(t, "vector")
		line, err := e.AppendMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := json.Unmarshal(line, &any); err != nil || any["session_id"] != nil && any["session_id"] != e.SessionID {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := ParseLine(line)
		if err != nil || got != e {
			t.Fatalf("%s\n%+v\n%+v\n%v", line, got, e, err)
		}
		version, mtime := rapid.Uint64Min(1).Draw(t, "version"), rapid.Int64().Draw(t, "mtime")
		done, err := Finish(nil, line, version, mtime, 0)
		if err != nil {
			t.Fatal(err)
		}
		e.Version, e.Mtime = version, mtime
		if want, _ := e.AppendMemory(nil); string(done) != string(want) {
			t.Fatalf("%s\n%s", done, want)
		}
		if got, err := ParseLine(done); err != nil || got != e {
			t.Fatalf("%s: %+v, %v", done, got, err)
		}
	})
}

func TestParseLineStrict(t *testing.T) {
	ok := []string{
		strings.Replace(contractLine, `"size"`, `"new":{"a":[1,-2.5e+3,null,{"b":"\"}"}],"c":true},"size"`, 1),
		strings.Replace(contractLine, `"s1"`, `"\ud83d\ude00\u0041\/"`, 1),
		`{"deleted":true,"version":9}`,
	}
	for _, s := range ok {
		if _, err := ParseLine([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	bad := []string{
		"", "{", "{}", "null", " " + contractLine, contractLine + " ", contractLine + "}",
		strings.Replace(contractLine, `"size":1043`, `"size":1043,"size":1043`, 1),
		strings.Replace(contractLine, "1043", "01043", 1), strings.Replace(contractLine, "1043", "1.5", 1),
		strings.Replace(contractLine, "1043", "99999999999999999999", 1), strings.Replace(contractLine, "0.85", "NaN", 1),
		strings.Replace(contractLine, "0.85", "1e999", 1), strings.Replace(contractLine, "0.85", ".5", 1),
		strings.Replace(contractLine, "e3b0", "E3b0", 1),
		strings.Replace(contractLine, "s1", "\xff", 1), strings.Replace(contractLine, "s1", `\ud83d`, 1),
		strings.Replace(contractLine, "s1", "\n", 1),
		strings.Replace(contractLine, `"dimension":768`, `"dimension":-1`, 1),
		strings.Replace(contractLine, `"dimension":768`, `"dimension":9999999999`, 1),
		strings.Replace(contractLine, `"vector_id":16`, `"vector_id":0`, 1),
		strings.Replace(contractLine, `"vector_id":16`, `"vector_id":9223372036854775808`, 1),
		strings.Replace(contractLine, "T03", " 03", 1), `{"deleted":true}`, `{"deleted":false,"version":9}`,
		strings.Replace(contractLine, `"size"`, `"x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`,"size"`, 1),
	}
	for _, s := range bad {
		if e, err := ParseLine([]byte(s)); !errors.Is(err, errLine) {
			t.Errorf("%.200s: %+v, %v", s, e, err)
		}
	}
	for i := range contractLine { // every cut
		if _, err := ParseLine([]byte(contractLine[:i])); err == nil {
			t.Errorf("cut at %d", i)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1)} {
		e := Entry{Score: f}
		if _, err := e.AppendMemory(nil); !errors.Is(err, errs.ErrInvalid) {
			t.Error(f, err)
		}
	}
}

func TestFloat(t *testing.T) {
	for f, want := range map[float64]string{0: "0", math.Copysign(0, -1): "0", 1: "1", 0.85: "0.85", 1e21: "1e+21",
		1e20: "100000000000000000000", 1e-6: "0.000001", 1e-7: "1e-7", -1.5e-300: "-1.5e-300", 5e-324: "5e-324",
		1.5e22: "1.5e+22"} {
		if got := string(appendFloat([]byte("x"), f)); got != "x"+want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}

// Failure 60: no two pairs have the same key, and no session has the memories of another.
func TestSessionKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab\x00\x01\x02")))
		s, id, s2, id2 := text.Draw(t, "s"), text.Draw(t, "id"), text.Draw(t, "s2"), text.Draw(t, "id2")
		a, b := SessionKey(s, id), SessionKey(s2, id2)
		if (a == b) != (s == s2 && id == id2) || strings.HasPrefix(b, SessionPrefix(s)) != (s == s2) {
			t.Fatalf("%q and %q", a, b)
		}
		if gs, gid, ok := SplitSessionKey(a); !ok || gs != s || gid != id {
			t.Fatalf("%q: %q %q %v", a, gs, gid, ok)
		}
	})
	if at, id, ok := SplitExpiryKey(ExpiryKey(t0, "x\x00")); !ok || !at.Equal(t0) || id != "x\x00" {
		t.Error(at, id, ok)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(contractLine))
	f.Add([]byte(`{"deleted":true,"version":9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseLine(b); err == nil && !json.Valid(b) {
			t.Errorf("%q is not JSON", b)
		}
	})
}

func BenchmarkParseLine(b *testing.B) {
	b.ReportAllocs()
	line := []byte(contractLine)
	for b.Loop() {
		if _, err := ParseLine(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFinish(b *testing.B) {
	e, _ := ParseLine([]byte(contractLine))
	e.Version = 0
	line, _ := e.AppendMemory(nil)
	var dst []byte
	for b.Loop() {
		dst, _ = Finish(dst[:0], line, 17, 1, 0)
	}
}

// Lines for which samePairs returns true have the same pairs, and it recognizes lines as they are
// written.
func TestSamePairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) ([]byte, Entry) {
			e := Entry{
				Filepath:  rapid.SampledFrom([]string{"a", `,"size":1,"mtime":2,"version":3`, "\""}).Draw(t, label+"path"),
				SessionID: rapid.SampledFrom([]string{"", "s", `","version":9`, `,"size":1`}).Draw(t, label+"session"),
				Version:   rapid.Uint64Min(1).Draw(t, label+"version"), Mtime: rapid.Int64Min(0).Draw(t, label+"mtime"),
				Dimension: rapid.IntRange(UnknownDimension, 3).Draw(t, label+"dimension"),
				VectorID:  rapid.Int64Range(0, 1).Draw(t, label+"vector"),
			}
			if rapid.Bool().Draw(t, label+"expires") {
				e.ExpiresAt = t0.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, label+"at")) * time.Second)
			}
			line, err := e.AppendMemory(nil)
			if err != nil {
				t.Fatal(err)
			}
			return line, e
		}
		a, ea := draw("a")
		b, eb := draw("b")
		if got, want := samePairs(a, b), ea.SessionID == eb.SessionID && ea.ExpiresAt.Equal(eb.ExpiresAt); got != want {
			t.Fatalf("%v, want %v:\n%s\n%s", got, want, a, b)
		}
	})
	if samePairs([]byte(contractLine), nil) || samePairs(nil, nil) {
		t.Error("nothing is no line")
	}
	unstamped := []byte(strings.Replace(contractLine, `"mtime"`, `"x":1,"mtime"`, 1))
	if samePairs(unstamped, unstamped) {
		t.Error("not as this package writes it")
	}
}

// The number of a writer is after the version, and does not prevent the recognition of the same session
// and expiry.
func TestLineBy(t *testing.T) {
	line := []byte(`{"filepath":"memories/a.json",` +
		`"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z",` +
		`"quickrecal_score":0.5,` +
		`"content_hash":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",` +
		`"size":7,"dimension":2,"session_id":"s"}`)
	with, err := Finish(nil, line, 16, 5, 1<<32-1)
	if err != nil || !strings.Contains(string(with), `,"mtime":5,"version":16,"by":4294967295,"dimension":2`) {
		t.Fatalf("%s, %v", with, err)
	}
	e, err := ParseLine(with)
	if err != nil || e.By != 1<<32-1 || e.Version != 16 || e.SessionID != "s" {
		t.Errorf("%+v, %v", e, err)
	}
	if again, err := e.AppendMemory(nil); err != nil || !strings.Contains(string(again), `"version":16,"by":4294967295,`) {
		t.Errorf("%s, %v", again, err)
	}
	without, err := Finish(nil, line, 24, 6, 0)
	if err != nil || strings.Contains(string(without), "by\"") || !samePairs(with, without) {
		t.Errorf("%s, %v", without, err)
	}
	o, err := ParseLine(without)
	if o.Version, o.Mtime = e.Version, e.Mtime; err != nil || !e.Agrees(o) || !o.Agrees(e) {
		t.Error("a line without a writer does not agree with one that has it")
	}
	if o.By = 7; e.Agrees(o) {
		t.Error("lines of two writers agree")
	}
	for _, bad := range []string{"0", "4294967296", "-1", `"1"`} {
		if _, err := ParseLine([]byte(strings.Replace(string(with), "4294967295", bad, 1))); err == nil {
			t.Errorf("the writer %s is accepted", bad)
		}
	}
}
