package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
)

func parse(t testing.TB, s string) *Object {
	t.Helper()
	o, err := Parse([]byte(s), 0)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return o
}

func TestUnchangedMembersKeepTheirBytes(t *testing.T) {
	src := `{"b":1.0,"caf\u00e9" : {"x":[1,  2]},
 "a":null,"e":-1E+2}`
	o := parse(t, src)
	want := "{\n  \"b\": 1.0,\n  \"caf\\u00e9\": {\"x\":[1,  2]},\n  \"a\": null,\n  \"e\": -1E+2\n}\n"
	if got := string(o.AppendDocument(nil)); got != want {
		t.Errorf("got %s", got)
	}
	c := o.Clone()
	c.Set("café", []byte("7"), nil)
	c.Remove("b")
	want = "{\n  \"caf\\u00e9\": 7,\n  \"a\": null,\n  \"e\": -1E+2\n}\n"
	if got := string(c.AppendDocument(nil)); got != want {
		t.Errorf("got %s", got)
	}
	if raw, _ := o.Get("café"); string(raw) != `{"x":[1,  2]}` {
		t.Errorf("the clone changed its source: %s", raw)
	}
	if got := string(parse(t, " {} \n").AppendDocument(nil)); got != "{}\n" {
		t.Errorf("got %q", got)
	}
}

func names(o *Object) string {
	var s []string
	for _, m := range o.Members() {
		s = append(s, m.Name)
	}
	return strings.Join(s, " ")
}

func TestNewMembersHaveTheirPlace(t *testing.T) {
	order := []string{"a", "b", "c", "d"}
	for _, c := range []struct{ src, set, want string }{
		{`{}`, "b", "b"},
		{`{"x":1}`, "b", "x b"},
		{`{"x":1,"c":1,"y":1}`, "b", "x b c y"},
		{`{"a":1,"x":1,"c":1}`, "b", "a b x c"},
		{`{"a":1,"c":1,"x":1}`, "d", "a c d x"},
		{`{"a":1,"c":1}`, "zz", "a c zz"},
		{`{"c":1,"a":1}`, "c", "c a"},
	} {
		o := parse(t, c.src)
		o.Set(c.set, []byte("2"), order)
		if got := names(o); got != c.want {
			t.Errorf("%s set %s: %s, want %s", c.src, c.set, got, c.want)
		}
	}
	o := parse(t, `{"x":0,"c":1,"y":2,"a":3,"b":4}`)
	o.Arrange(order)
	if got := names(o); got != "x a y b c" {
		t.Error(got)
	}
	if !o.Rename("y", "d") || o.Rename("x", "a") || o.Rename("none", "e") {
		t.Error("Rename")
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000)
	for _, c := range []struct {
		src       string
		offset    int64
		truncated bool
		text      string
	}{
		{``, 0, true, "empty"},
		{"  \n", 3, true, "empty"},
		{`{`, 1, true, "breaks off at byte 1"},
		{`{"a":1`, 6, true, "breaks off at byte 6"},
		{`{"a":1,`, 7, true, "breaks off"},
		{`{"a":"xy`, 8, true, "breaks off"},
		{`{"a":"\u12`, 10, true, "breaks off"},
		{`{"a":tr`, 7, true, "breaks off"},
		{`{"a":[1,{"b":`, 13, true, "breaks off"},
		{"{\"a\":\"\xc3", 7, true, "breaks off"},
		{`{"a":1,}`, 6, false, "invalid"},
		{`{"a" 1}`, 5, false, "invalid"},
		{`{"a":NaN}`, 5, false, "'N'"},
		{`{"a":Infinity}`, 5, false, "'I'"},
		{`{"a":-Infinity}`, -1, false, "'I'"},
		{`{"a":01}`, 6, false, "invalid"},
		{`{"a":1,"a":2}`, 7, false, "duplicate"},
		{`{"x":{"a":1,"\u0061":2}}`, 12, false, "duplicate"},
		{"{\"a\":\"\xff\"}", -1, false, "UTF-8"},
		{`{"a":"\ud800"}`, -1, false, "surrogate"},
		{`{"a":"\udc00x"}`, -1, false, "surrogate"},
		{`{"\ud800":1}`, -1, false, "surrogate"},
		{"{\"a\":\"\x01\"}", -1, false, "invalid"},
		{`[1]`, 0, false, "not a JSON object"},
		{` 5`, 1, false, "not a JSON object"},
		{`{"a":1} x`, 8, false, "data after"},
		{"{\"a\":1}\n\x00\x00", 8, false, "data after"},
		{"\x00\x00\x00", 0, false, "zero bytes"},
		{"\xef\xbb\xbf{}", 0, false, "byte order mark"},
		{"{\n<<<<<<< HEAD\n\"a\":1\n", 2, false, "conflict"},
		{"{\n\"a\":1,\n=======\n\"a\":2}", 9, false, "conflict"},
		{"<<<<<<< HEAD\n{}", 0, false, "conflict"},
	} {
		o, err := Parse([]byte(c.src), 0)
		var syn *SyntaxError
		if o != nil || !errors.As(err, &syn) || !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v, %v", c.src, o, err)
			continue
		}
		if syn.Truncated != c.truncated || c.offset >= 0 && syn.Offset != c.offset || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: offset %d truncated %v: %v; want offset %d, %v, %q", c.src, syn.Offset, syn.Truncated, err, c.offset, c.truncated, c.text)
		}
	}
	for _, src := range []string{deep, strings.Repeat("[", 1<<20), `{"a":` + strings.Repeat("[", 100)} {
		var f *errs.FieldError
		if _, err := Parse([]byte(src), 0); !errors.As(err, &f) || !errors.Is(err, errs.ErrTooLarge) || f.Limit != "depth 100" {
			t.Errorf("%.20s…: %v", src, err)
		}
	}
	if _, err := Parse([]byte(`{"a":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+"}"), 0); err != nil {
		t.Errorf("depth 100: %v", err)
	}
	// Brackets in strings do not count, brackets behind a string do.
	if _, err := Parse([]byte(`{"a":"\\\"`+strings.Repeat("[", 200)+`"}`), 0); err != nil {
		t.Error(err)
	}
	if _, err := Parse([]byte(`{"a\\":`+strings.Repeat("[", 200)), 0); !errors.Is(err, errs.ErrTooLarge) {
		t.Error(err)
	}
	// Whatever the limit, jsontext stops at 10,000 levels.
	if _, err := Parse([]byte(strings.Repeat(`{"a":`, 1<<20)), 1<<30); err == nil {
		t.Error("depth 1,048,576 was taken")
	}
}

// TestEveryPrefixBreaksOff verifies that every strict prefix of a document is reported as truncated.
func TestEveryPrefixBreaksOff(t *testing.T) {
	src := `{"a":[1,-2.5e3,true,null,"x\"\u00e9é"],"b":{"c":{}}}`
	for n := range len(src) {
		_, err := Parse([]byte(src[:n]), 0)
		var syn *SyntaxError
		if !errors.As(err, &syn) || !syn.Truncated || syn.Offset != int64(n) {
			t.Errorf("%q: %v", src[:n], err)
		}
	}
}

// TestNoQuadraticTime verifies that the time is linear in the size: each of these texts of 4 MiB takes well under the
// test's time-out unless something is quadratic.
func TestNoQuadraticTime(t *testing.T) {
	proofs.OneGoroutine(t)
	const n = 1 << 22
	var many bytes.Buffer
	many.WriteString(`{"x":0`)
	for i := range n / 16 {
		many.WriteString(`,"m`)
		many.WriteString(strconv.Itoa(i))
		many.WriteString(`":1`)
	}
	many.WriteString(`}`)
	for name, src := range map[string]string{
		"backslashes": `{"a":"` + strings.Repeat(`\\`, n/2) + `"}`,
		"quotes":      `{"a":"` + strings.Repeat(`\"`, n/2) + `"}`,
		"open string": `{"a":"` + strings.Repeat(`\"`, n/2),
		"number":      `{"a":` + strings.Repeat(`1`, n) + `}`,
		"members":     many.String(),
	} {
		start := time.Now()
		o, err := Parse([]byte(src), 0)
		if err == nil {
			_, err = DecodeValue(o.Members()[0].Value)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s took %v (%v)", name, d, err)
		}
	}
}

func TestNumber(t *testing.T) {
	for src, want := range map[string]any{
		"0": 0.0, "1.0": 1.0, "-2.5e3": -2500.0, "0.8599999999999999": 0.8599999999999999,
		"1741289256.5320833": 1741289256.5320833, "0.0039643836207687855": 0.0039643836207687855,
		"9007199254740992": 9007199254740992.0, "9007199254740993": json.Number("9007199254740993"),
		"18446744073709551615": json.Number("18446744073709551615"), "123456789012345680000": json.Number("123456789012345680000"),
		"1e21": 1e21, "1000000000000000100": json.Number("1000000000000000100"), "1.0000000000000001e+18": 1000000000000000128.0, "1e400": json.Number("1e400"), "1e-400": json.Number("1e-400"), "0e-400": 0.0,
		"1e99999999999999999999": json.Number("1e99999999999999999999"), "0e99999999999999999999": 0.0,
		"0.10000000000000001": json.Number("0.10000000000000001"), "1.00000000000000000000": 1.0,
		"100000000000000000000000": json.Number("100000000000000000000000"), "5e-324": 5e-324, "0.00000000000000000000000001": 1e-26,
	} {
		if got := Number([]byte(src)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %T %v, want %T %v", src, got, got, want, want)
		}
	}
}

func TestAppendFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", -0.5: "-0.5", 1e21: "1e+21", 1e20: "100000000000000000000", 1000000000000000128: "1.0000000000000001e+18", 1 << 53: "9007199254740992", 1e-6: "0.000001", 1e-7: "1e-7",
		5e-324: "5e-324", math.MaxFloat64: "1.7976931348623157e+308", 1e-10: "1e-10", 333333333.33333329: "333333333.3333333",
	} {
		if got, err := AppendFloat(nil, f, 64); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v, want %s", f, got, err, want)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := AppendFloat(nil, f, 64); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// TestAppendStringAnywhere verifies that encoding eight bytes at a time gives the same result as byte by byte, wherever
// in a string something has to be escaped.
func TestAppendStringAnywhere(t *testing.T) {
	naive := func(s string) string {
		out := []byte{'"'}
		for _, r := range s {
			switch {
			case r == '"' || r == '\\':
				out = append(out, '\\', byte(r))
			case r < ' ' && strings.ContainsRune("\b\f\n\r\t", r):
				out = append(out, '\\', "btn_fr"[r-'\b'])
			case r < ' ':
				out = fmt.Appendf(out, "\\u%04x", r)
			default:
				out = utf8.AppendRune(out, r)
			}
		}
		return string(append(out, '"'))
	}
	var strange []string
	for c := range rune(0x100) {
		strange = append(strange, string(c))
	}
	for _, c := range append(strange, "…", "\U0001f600") {
		for n := range 40 {
			s := strings.Repeat("a", n) + c + strings.Repeat("~", 40-n) + c
			if got, err := AppendString([]byte("x"), s); err != nil || string(got) != "x"+naive(s) {
				t.Fatalf("%q: %s, %v", s, got, err)
			}
			if got := string(AppendEscaped([]byte("x"), s)); `"`+got[1:]+`"` != naive(s) {
				t.Fatalf("%q: %s", s, got)
			}
			broken := s[:n] + "\xff" + s[n:]
			if utf8.ValidString(broken) {
				continue
			}
			if _, err := AppendString(nil, broken); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at byte %d", n)) {
				t.Fatalf("%q: %v", broken, err)
			}
		}
	}
}

func TestAppendString(t *testing.T) {
	in := "a\"\\\b\f\n\r\t\x00\x1f\x7f</é\u2028🙂"
	want := `"a\"\\\b\f\n\r\t\u0000\u001f` + "\x7f</é\u2028🙂\""
	if got, err := AppendString(nil, in); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := AppendString(nil, "ab\xff"); err == nil || !strings.Contains(err.Error(), "at byte 2") {
		t.Error(err)
	}
}

type odd struct {
	N json.Number
	T time.Time
	B []byte
}

func TestAppendValue(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]any{"b": 1, "a": []any{nil, true, "x"}}, "{\n  \"a\": [\n    null,\n    true,\n    \"x\"\n  ],\n  \"b\": 1\n}"},
		{map[string]any{}, "{}"}, {[]any{}, "[]"}, {json.Number("1.50"), "1.50"}, {int8(-3), "-3"}, {uint64(math.MaxUint64), "18446744073709551615"},
		{float32(0.1), "0.1"}, {[]string{"x"}, "[\n  \"x\"\n]"}, {time.Unix(0, 0).UTC(), `"1970-01-01T00:00:00Z"`},
		{odd{N: "12345678901234567890"}, "{\n  \"B\": \"\",\n  \"N\": 12345678901234567890,\n  \"T\": \"0001-01-01T00:00:00Z\"\n}"},
	} {
		got, err := AppendValue(nil, c.v, 0, 0)
		if err != nil || string(got) != c.want {
			t.Errorf("%v: %s, %v, want %s", c.v, got, err, c.want)
		}
	}
	cyclic := map[string]any{}
	cyclic["me"] = []any{cyclic}
	type node struct{ Next *node }
	ring := &node{}
	ring.Next = ring
	for _, c := range []struct {
		v    any
		path string
	}{
		{map[string]any{"a": []any{0, math.NaN()}}, ".a[1]"},
		{map[string]any{"a b": make(chan int)}, `["a b"]`},
		{map[string]any{"a": map[string]any{"f": func() {}}}, ".a.f"},
		{map[string]any{"s": struct{ X []float64 }{[]float64{1, math.Inf(1)}}}, ".s.X[1]"},
		{map[string]any{"a": "\xff"}, ".a"},
		{map[string]any{"\xff": 1}, `["\xff"]`},
		{map[string]any{"n": json.Number("1 2")}, ".n"},
		{map[string]any{"n": json.Number("")}, ".n"},
		{map[string]any{"n": json.Number(" 1")}, ".n"},
		{map[string]any{"n": json.Number("NaN")}, ".n"},
		{map[string]any{"n": json.Number(`"x"`)}, ".n"},
		{cyclic, ".me"},
		{map[string]any{"r": ring}, ".r"},
	} {
		_, err := AppendValue(nil, c.v, 0, 0)
		var f *errs.FieldError
		if !errors.As(err, &f) || !strings.HasPrefix(f.Field, c.path) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

func TestMergeValue(t *testing.T) {
	raw := `{"z":1.0,"a":{"p":1e2,"q":[1.0,{"r":2.00}]},"gone":0,"é":"\u00e9"}`
	decode := func() map[string]any {
		v, err := DecodeValue([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return v.(map[string]any)
	}
	if out, same, err := MergeValue([]byte(raw), decode(), 0, 0); err != nil || !same || string(out) != raw {
		t.Errorf("unchanged: %s %v %v", out, same, err)
	}
	m := decode()
	delete(m, "gone")
	m["new"], m["b"] = true, nil
	m["a"].(map[string]any)["q"].([]any)[1].(map[string]any)["r"] = 3.0
	out, same, err := MergeValue([]byte(raw), m, 0, 0)
	want := "{\n  \"z\": 1.0,\n  \"a\": {\n    \"p\": 1e2,\n    \"q\": [\n      1.0,\n      {\n        \"r\": 3\n      }\n    ]\n  },\n  \"é\": \"\\u00e9\",\n  \"b\": null,\n  \"new\": true\n}"
	if err != nil || same || string(out) != want {
		t.Errorf("%s\n%v %v", out, same, err)
	}
	for _, c := range []struct {
		raw  string
		v    any
		want string
	}{
		{"1.0", 1, "1.0"}, {"1.0", 1.5, "1.5"}, {"-1", 1, "1"}, {"10", -10, "-10"}, {"0.10000000000000001", 0.1, "0.1"}, {"-0.0", 0, "0"}, {"null", "null", `"null"`},
		{"true", false, "false"}, {`"1"`, 1, "1"}, {"{}", nil, "null"}, {"[]", map[string]any{}, "{}"}, {"[1, 2]", []any{}, "[]"},
		{`["a" ]`, []string{"a"}, `["a" ]`}, {`{"a":1.0}`, map[string]int{"a": 1}, `{"a":1.0}`}, {"[1.0]", []any{1.0, 2.0}, "[\n  1.0,\n  2\n]"},
		{"1E2", json.Number("100"), "1E2"}, {`"a\/b"`, "a/b", `"a\/b"`},
	} {
		if out, _, err := MergeValue([]byte(c.raw), c.v, 0, 0); err != nil || string(out) != c.want {
			t.Errorf("%s with %v: %s, %v", c.raw, c.v, out, err)
		}
	}
}
