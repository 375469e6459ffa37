package assembly

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/varve-db/varve/errs"
)

// DefaultHalfLife is the time in which an activation decays by half if no other half-life is given.
const DefaultHalfLife = 24 * time.Hour

// ActivationAt returns the activation level at the time now. The stored level decays exponentially since
// LastActivation: it halves in each half-life. A half-life of 0 means DefaultHalfLife. No write is needed for the
// decay. A level does not decay if LastActivation is not set, or if it is in the future because a clock was set back.
func (a *Assembly) ActivationAt(now time.Time, halfLife time.Duration) float64 {
	if halfLife <= 0 {
		halfLife = DefaultHalfLife
	}
	if a.LastActivation.IsZero() || !now.After(a.LastActivation) {
		return a.ActivationLevel
	}
	return a.ActivationLevel * math.Exp2(-float64(now.Sub(a.LastActivation))/float64(halfLife))
}

// Activate adds boost to the activation level at the time now, limits the sum to the range 0 to 1, and increments
// ActivationCount. A half-life of 0 means DefaultHalfLife. now is truncated to microseconds. LastActivation is never
// set to an earlier time. If boost is NaN or infinite, the error is a *errs.FieldError and a does not change.
func (a *Assembly) Activate(now time.Time, boost float64, halfLife time.Duration) error {
	if math.IsNaN(boost) || math.IsInf(boost, 0) {
		return &errs.FieldError{Field: "boost", Value: strconv.FormatFloat(boost, 'g', -1, 64),
			Err: errors.New("not a finite number")}
	}
	a.ActivationLevel = min(max(a.ActivationAt(now, halfLife)+boost, 0), 1)
	if now = now.UTC().Truncate(time.Microsecond); now.After(a.LastActivation) {
		a.LastActivation = now
	}
	a.ActivationCount = added(a.ActivationCount, 1)
	return nil
}

// added returns the sum of two counts, or the largest int64 if the sum overflows.
func added(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
