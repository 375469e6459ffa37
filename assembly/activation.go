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

// ActivationAt returns the activation level at now: the stored level, halved for each half-life (0: DefaultHalfLife)
// since LastActivation. So a level decays without a write. A level does not decay if there is no LastActivation, or if
// LastActivation is in the future because a clock was set back.
func (a *Assembly) ActivationAt(now time.Time, halfLife time.Duration) float64 {
	if halfLife <= 0 {
		halfLife = DefaultHalfLife
	}
	if a.LastActivation.IsZero() || !now.After(a.LastActivation) {
		return a.ActivationLevel
	}
	return a.ActivationLevel * math.Exp2(-float64(now.Sub(a.LastActivation))/float64(halfLife))
}

// Activate adds boost to the level that remains at now, limits the sum to the range 0 to 1, and increments
// ActivationCount. It reduces a stored level above 1 to 1. now is truncated to microseconds, and never moves
// LastActivation back.
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

// added returns the sum, or the largest int64 if that overflows.
func added(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
