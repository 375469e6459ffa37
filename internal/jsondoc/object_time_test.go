package jsondoc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/errs"
)

func TestDecodeTime(t *testing.T) {
	east := time.FixedZone("east", 2*3600)
	// The right side is what Python's datetime returns for the left.
	for src, want := range map[string]string{
		`"2025-03-06T19:27:36.532083Z"`:         "2025-03-06T19:27:36.532083Z",
		`"2025-03-06T19:27:36.532083+00:00"`:    "2025-03-06T19:27:36.532083Z",
		`"2025-03-06T19:27:36.5-05:30"`:         "2025-03-07T00:57:36.500000Z",
		`"2025-03-06T19:27:36+0200"`:            "2025-03-06T17:27:36.000000Z",
		`"2025-03-06 19:27:36.532083"`:          "2025-03-06T17:27:36.532083Z",
		`"2025-03-06T19:27:36"`:                 "2025-03-06T17:27:36.000000Z",
		`"2025-03-06T19:27"`:                    "2025-03-06T17:27:00.000000Z",
		`"2025-03-06"`:                          "2025-03-05T22:00:00.000000Z",
		`"2025-03-06t19:27:36z"`:                "2025-03-06T19:27:36.000000Z",
		`"2025-03-06T19:27:36.123456789Z"`:      "2025-03-06T19:27:36.123456789Z",
		`1741289256.5320833`:                    "2025-03-06T19:27:36.532083Z",
		`1741289256.9999999`:                    "2025-03-06T19:27:37.000000Z",
		`0.0000025`:                             "1970-01-01T00:00:00.000002Z",
		`0.0000035`:                             "1970-01-01T00:00:00.000004Z",
		`-0.25`:                                 "1969-12-31T23:59:59.750000Z",
		`1741289256`:                            "2025-03-06T19:27:36.000000Z",
		`1741289256532`:                         "2025-03-06T19:27:36.532000Z",
		`1741289256532.0`:                       "2025-03-06T19:27:36.532000Z",
		`99999999999`:                           "5138-11-16T09:46:39.000000Z",
		`100000000000`:                          "1973-03-03T09:46:40.000000Z",
		`0`:                                     "1970-01-01T00:00:00.000000Z",
		`1.741289256e9`:                         "2025-03-06T19:27:36.000000Z",
		`"2024-02-29T23:59:59.999999999+00:00"`: "2024-02-29T23:59:59.999999999Z",
	} {
		got, err := DecodeTime([]byte(src), east)
		if err != nil || string(AppendTime(nil, got)) != `"`+want+`"` {
			t.Errorf("%s: %s, %v, want %s", src, AppendTime(nil, got), err, want)
		}
	}
	if got, err := DecodeTime([]byte("null"), nil); err != nil || !got.IsZero() {
		t.Error(got, err)
	}
	for _, src := range []string{`""`, `"yesterday"`, `"2025-02-30"`, `"2025-03-06T25:00:00Z"`, `true`, `[]`, `{}`, `1e300`, `1741289256532083000`, `-1e14`, `"1741289256"`,
		`"` + strings.Repeat("2", 1000) + `"`, `9999999999999999999999`} {
		got, err := DecodeTime([]byte(src), nil)
		if !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%.40s: %v, %v", src, got, err)
		}
	}
}

func TestNormalTime(t *testing.T) {
	for src, want := range map[string]bool{
		`"2025-03-06T19:27:36Z"`: true, `"2025-03-06T19:27:36.5Z"`: true, `"2025-03-06T19:27:36.123456789Z"`: true,
		`"2025-03-06T19:27:36+00:00"`: false, `"2025-03-06 19:27:36Z"`: false, `"2025-03-06T19:27:36"`: false, `1`: false, `null`: false,
		`"2025-03-06T19:27:36,5Z"`: false, `"2025-03-06T19:27:36.1234567891Z"`: false,
	} {
		if NormalTime([]byte(src)) != want {
			t.Error(src)
		}
	}
	if CheckTime(time.Time{}) != nil || CheckTime(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)) == nil || CheckTime(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)) == nil {
		t.Error("CheckTime")
	}
}

func TestDecodeFloats(t *testing.T) {
	for src, want := range map[string][]float32{
		"null": nil, "[]": {}, "[0, 0.0, -0]": {0, 0, 0}, "[1.5,-2e-3]": {1.5, -0.002},
		`"[-4.8e-02  4.46009226e-02\n 1.]"`: {-0.048, 0.0446009226, 1}, `"[0.1, 0.2]"`: {0.1, 0.2}, `" [1 2] "`: {1, 2}, `"[]"`: {},
	} {
		got, err := DecodeFloats([]byte(src), 10)
		if err != nil || len(got) != len(want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, %v", src, got, err)
		}
		for i := range want {
			if i < len(got) && got[i] != want[i] {
				t.Errorf("%s: %v", src, got)
			}
		}
		if err == nil && !EqualFloats([]byte(src), got) {
			t.Errorf("%s differs from itself", src)
		}
	}
	for src, want := range map[string]string{
		`"[0.1 0.2 ... 0.3]"`: "lost", `"[nan 1]"`: "[0]", `"[1 inf]"`: "[1]", `"[1 0x1p3]"`: "[1]", `"[1 1_0]"`: "[1]", `"x"`: "printed", `""`: "printed",
		`[1,null]`: "[1]", `[1,"2"]`: "[1]", `[[1]]`: "[0]", `[1e39]`: "float32", `5`: "list", `true`: "list", `{}`: "list", `[1,2,3,4]`: "limit: 3", `"[1 2 3 4]"`: "limit: 3",
	} {
		if got, err := DecodeFloats([]byte(src), 3); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
}

// TestAppendTimeIsFormat verifies that AppendTime gives the same text as time.Time.Format.
func TestAppendTimeIsFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(-62135596800e6, 253402300799e6).Draw(t, "at"))
		if rapid.Bool().Draw(t, "nano") {
			at = at.Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ns")))
		}
		layout := `"2006-01-02T15:04:05.000000Z"`
		if at.Nanosecond()%1000 != 0 {
			layout = `"2006-01-02T15:04:05.000000000Z"`
		}
		if got, want := string(AppendTime(nil, at)), at.UTC().Format(layout); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
