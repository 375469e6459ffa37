package jsondoc

import (
	"bytes"
	stdjson "encoding/json"
	"strconv"
)

// Number returns the Go value of a JSON number. It returns a float64, unless float64 cannot represent the number
// exactly enough: an integer that is too large, too many digits, or a magnitude out of range. Then it returns the text
// as a json.Number.
func Number(raw []byte) any {
	if f, exact := exactFloat(raw); exact {
		return f
	}
	return stdjson.Number(raw)
}

func exactFloat(raw []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, false
	}
	if len(raw) <= 15 && bytes.IndexByte(raw, 'e') < 0 && bytes.IndexByte(raw, 'E') < 0 {
		return f, true // 15 decimal digits always survive (DBL_DIG)
	}
	var buf [32]byte
	if bytes.ContainsAny(raw, ".eE") {
		return f, sameNumber(raw, strconv.AppendFloat(buf[:0], f, 'e', -1, 64))
	}
	// An integer must be exact, not only distinguishable, since callers convert it.
	return f, exactInteger(raw, f)
}

func exactInteger(digits []byte, f float64) bool {
	var buf [32]byte
	return bytes.Equal(digits, strconv.AppendFloat(buf[:0], f, 'f', 0, 64))
}

// sameNumber reports whether two JSON numbers have exactly the same decimal value and the same sign; 0 and -0 are
// different.
func sameNumber(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okX := parseDecimal(a)
	y, okY := parseDecimal(b)
	return okX && okY && x.neg == y.neg && x.exp == y.exp && bytes.Equal(x.digits, y.digits)
}

// decimal is the number 0.digits × 10^exp; digits neither starts nor ends with a zero.
type decimal struct {
	neg    bool
	digits []byte
	exp    int
}

func parseDecimal(raw []byte) (decimal, bool) {
	var d decimal
	if len(raw) > 0 && raw[0] == '-' {
		d.neg, raw = true, raw[1:]
	}
	mantissa := raw
	exponent := 0
	ok := true
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		var err error
		mantissa = raw[:e]
		exponent, err = strconv.Atoi(string(raw[e+1:]))
		ok = err == nil && -1<<30 < exponent && exponent < 1<<30
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	digits := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	d.digits = bytes.TrimLeft(digits, "0")
	d.exp = len(whole) - (len(digits) - len(d.digits)) + exponent
	if d.digits = bytes.TrimRight(d.digits, "0"); len(d.digits) == 0 {
		d.digits, d.exp, ok = nil, 0, true
	}
	return d, ok
}
