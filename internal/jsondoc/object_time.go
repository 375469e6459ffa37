package jsondoc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// millisFrom is the minimum magnitude of a whole number that is read as milliseconds since 1970. As seconds, such a
// number would be beyond the year 5138.
const millisFrom = 1e11

var errTime = errors.New("not a time; write RFC 3339, ISO 8601, or seconds or milliseconds since 1970")

// DecodeTime decodes a time in every form that occurs in stored files. The result is in UTC; null is the
// zero time.
//
//	"2025-03-06T19:27:36.532083Z", "…+02:00"   RFC 3339
//	"2025-03-06 19:27:36.532083"               without a zone: in loc (nil: UTC)
//	"2025-03-06"                               midnight
//	1741289256.5320833                         seconds, to the microsecond, rounded half to even as by Python's datetime
//	1741289256532                              milliseconds: whole numbers from 1e11
func DecodeTime(raw []byte, loc *time.Location) (time.Time, error) {
	var t time.Time
	var err error
	switch {
	case raw[0] == 'n':
		return time.Time{}, nil
	case raw[0] == '"':
		t, err = parseISO(unquote(raw), loc)
	case isNumber(raw):
		t, err = parseEpoch(string(raw))
	default:
		err = errTime
	}
	if err == nil && !writable(t) {
		err = fmt.Errorf("the time is outside the years 1 to 9999; a number from %.0e on is read as milliseconds "+
			"since 1970", float64(millisFrom))
	}
	if err != nil {
		return time.Time{}, &errs.FieldError{Value: human.Quote(string(raw)), Err: err}
	}
	return t, nil
}

// CheckTime returns an error for a time that RFC 3339 or Python cannot represent. The zero time is valid.
func CheckTime(t time.Time) error {
	if t.IsZero() || writable(t) {
		return nil
	}
	return &errs.FieldError{Value: t.UTC().Format(time.RFC3339), Limit: "years 1 to 9999",
		Err: errors.New("cannot be written as RFC 3339")}
}

func writable(t time.Time) bool { y := t.UTC().Year(); return 1 <= y && y <= 9999 }

// AppendTime appends t as a JSON string in the form of RFC 3339, in UTC, with six digits of a second, or nine if t has
// nanoseconds. Strings with six digits sort in the order of their times.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	nano := t.Nanosecond()
	switch {
	case nano%1000 != 0:
		return t.AppendFormat(dst, `"2006-01-02T15:04:05.000000000Z"`)
	case year < 0 || year > 9999:
		return t.AppendFormat(dst, `"2006-01-02T15:04:05.000000Z"`)
	}
	// By hand, because every put writes five times: this takes a fifth of AppendFormat's time.
	hour, minute, second := t.Clock()
	const pattern = `"0000-00-00T00:00:00.000000Z"`
	var b [len(pattern)]byte
	copy(b[:], pattern)
	twoDigits(b[1:], year/100)
	twoDigits(b[3:], year%100)
	twoDigits(b[6:], int(month))
	twoDigits(b[9:], day)
	twoDigits(b[12:], hour)
	twoDigits(b[15:], minute)
	twoDigits(b[18:], second)
	micro := nano / 1000
	twoDigits(b[21:], micro/10000)
	twoDigits(b[23:], micro/100%100)
	twoDigits(b[25:], micro%100)
	return append(dst, b[:]...)
}

// twoDigits writes n, a number below 100, as two decimal digits to the beginning of b.
func twoDigits(b []byte, n int) { b[0], b[1] = byte('0'+n/10), byte('0'+n%10) }

// NormalTime reports whether raw is a time in a form that an update does not rewrite: RFC 3339 in UTC, with a Z, and
// with no more than nine digits of a second.
func NormalTime(raw []byte) bool {
	s, ok := DecodeString(raw)
	if !ok || !strings.HasSuffix(s, "Z") || len(s) < 20 || len(s) > 30 || s[10] != 'T' || strings.Contains(s, ",") {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// parseEpoch parses a number of seconds or milliseconds since 1970. It rounds in the same way as CPython's
// _PyTime_DoubleToDenominator with ROUND_HALF_EVEN, so that both give the same microsecond.
func parseEpoch(s string) (time.Time, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n >= millisFrom || n <= -millisFrom {
			return time.UnixMilli(n).UTC(), nil
		}
		return time.Unix(n, 0).UTC(), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > 1e15 {
		return time.Time{}, errTime
	}
	if math.Abs(f) >= millisFrom {
		f /= 1000
	}
	whole, fraction := math.Modf(f)
	micro := math.RoundToEven(fraction * 1e6)
	if micro >= 1e6 {
		whole, micro = whole+1, micro-1e6
	} else if micro < 0 {
		whole, micro = whole-1, micro+1e6
	}
	return time.Unix(int64(whole), int64(micro)*1000).UTC(), nil
}

// parseISO parses a time in the forms that Python's datetime.isoformat and similar functions print.
func parseISO(s string, loc *time.Location) (time.Time, error) {
	if loc == nil {
		loc = time.UTC
	}
	text := strings.TrimSpace(s)
	if len(text) > 64 {
		return time.Time{}, errTime
	}
	if len(text) > 10 && (text[10] == ' ' || text[10] == 't') {
		text = text[:10] + "T" + text[11:]
	}
	if strings.HasSuffix(text, "z") {
		text = text[:len(text)-1] + "Z"
	}
	for _, layout := range []string{
		time.RFC3339Nano, // a fraction is accepted behind the seconds of every layout
		"2006-01-02T15:04:05",
		"2006-01-02T15:04:05Z0700",
		"2006-01-02T15:04:05Z07",
		"2006-01-02T15:04:05Z07:00:00",
		"2006-01-02T15:04Z07:00",
		"2006-01-02T15:04",
		time.DateOnly,
	} {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errTime
}
