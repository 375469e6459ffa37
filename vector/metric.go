package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Metric is the measure by which two vectors are compared. The values of its constants are the numbers that FAISS
// uses.
type Metric int32

// The supported metrics.
const (
	IP Metric = 0 // cosine: the inner product of vectors of length 1
	L2 Metric = 1 // the squared distance
)

// String returns the name of the metric that config.json and mapping.json use.
func (m Metric) String() string {
	switch m {
	case IP:
		return "ip"
	case L2:
		return "l2"
	}
	return fmt.Sprintf("metric %d", int32(m))
}

// ParseMetric returns the metric with the given name. The name "" means IP.
func ParseMetric(s string) (Metric, error) {
	switch s {
	case "", "ip":
		return IP, nil
	case "l2":
		return L2, nil
	}
	return 0, &errs.FieldError{Field: "metric", Value: human.Quote(s), Err: errors.New(`must be "ip" or "l2"`)}
}

// score converts the result of a kernel into a score: the cosine for IP, 1/(1+d²) for L2. A greater score means a
// nearer vector.
func (m Metric) score(v float32) float64 {
	if m == L2 {
		return 1 / (1 + float64(v))
	}
	return max(-1, min(1, float64(v))) // rounding may exceed the range by about 1e-7
}

// Row appends the vector v to dst as a FAISS file stores it: unchanged for L2, scaled to length 1 for IP. A zero vector
// stays zero. The result is the same on all machines: the squares are exact in float64, so a fused multiply-add gives
// the same sum.
func (m Metric) Row(dst []byte, v []float32) []byte {
	norm := 1.0
	if m == IP {
		if norm = Norm(v); norm == 0 {
			norm = 1
		}
	}
	for _, x := range v {
		if norm != 1 {
			x = float32(float64(x) / norm)
		}
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// Norm returns the Euclidean length of v.
func Norm(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// query returns the vector v in the form in which a kernel compares it with rows: unchanged for L2, scaled to length 1
// for IP.
func (m Metric) query(v []float32) []float32 {
	row := m.Row(make([]byte, 0, 4*len(v)), v)
	q := make([]float32, len(v))
	for j := range q {
		q[j] = elementAt(row, j)
	}
	return q
}

// zero reports whether a row is the zero vector, which is never a hit of a search. Minus zero counts as zero.
func zero(row []byte) bool {
	for ; len(row) >= 4; row = row[4:] {
		if binary.LittleEndian.Uint32(row)<<1 != 0 {
			return false
		}
	}
	return true
}

// CheckFinite returns a *errs.FieldError for the first NaN or infinity in v, or nil if all elements are finite. field
// is the name for v in the error.
func CheckFinite(field string, v []float32) error {
	for i, x := range v {
		if d := x - x; d != 0 { // NaN if x is not finite
			return &errs.FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Value: fmt.Sprint(x),
				Err: errors.New("not a finite number")}
		}
	}
	return nil
}
