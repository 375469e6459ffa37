package vector

// Scorer compares a vector with rows that are not in a Set.
type Scorer struct {
	metric Metric
	vector []float32
	kernel kernel
	out    []float32
}

// NewScorer returns a Scorer that compares rows with the vector v. A Scorer must not be used by several goroutines at
// the same time.
func NewScorer(m Metric, v []float32) *Scorer {
	return &Scorer{metric: m, vector: m.query(v), kernel: kernelOf(m)}
}

// Scores appends to dst the score of each row, compared with the vector of the Scorer. rows contains the rows one
// directly after the other, each in the form that Metric.Row returns. The scores are the same as those that View.Search
// returns for equal vectors. A row of zeros has the score -2, below all others.
func (s *Scorer) Scores(dst []float64, rows []byte) []float64 {
	size := 4 * len(s.vector)
	n := len(rows) / size
	if cap(s.out) < n {
		s.out = make([]float32, n)
	}
	out := s.out[:n]
	s.kernel(s.vector, rows, out)
	for i, x := range out {
		if zero(rows[i*size : (i+1)*size]) {
			dst = append(dst, -2)
			continue
		}
		dst = append(dst, s.metric.score(x))
	}
	return dst
}
