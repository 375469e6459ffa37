package vector

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// tolerance returns the maximum error: a float32 sum of d products in at least four parts is off by no
// more than (d/4 + 8) roundings of the sum of their absolute values.
func tolerance(d int, size float64) float64 {
	return (float64(d)/4+8)*size*0x1p-24 + 1e-37
}

// exact returns the kernels' result in float64, and the sum of the absolute values.
func exact(m Metric, q []float32, row []byte) (v, size float64) {
	for j, x := range q {
		p := float64(x) * float64(elementAt(row, j))
		if m == L2 {
			d := float64(x) - float64(elementAt(row, j))
			// The difference was also rounded.
			p, size = d*d, size+2*d*d
		}
		v += p
		size += math.Abs(p)
	}
	return v, size
}

func appendRow(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func randomVector(r *rand.Rand, d int) []float32 {
	v := make([]float32, d)
	scale := math.Pow(10, float64(r.IntN(7)-3))
	for j := range v {
		v[j] = float32(r.NormFloat64() * scale)
	}
	return v
}

// TestKernels compares assembly and plain Go with float64, for all lengths and for rows at any
// alignment.
func TestKernels(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %s", seed, runtime.GOARCH)
	for _, m := range []Metric{IP, L2} {
		for name, k := range map[string]kernel{"plain": plainKernel(m), "fastest": kernelOf(m)} {
			for d := 0; d <= 300; d++ {
				n := 1 + r.IntN(5)
				shift := r.IntN(64)
				q := randomVector(r, d)
				buf := make([]byte, shift, shift+4*d*n)
				for range n {
					buf = appendRow(buf, randomVector(r, d))
				}
				rows, out := buf[shift:], make([]float32, n)
				for i := range out {
					out[i] = float32(math.NaN()) // every one must be written
				}
				k(q, rows, out)
				for i, got := range out {
					want, size := exact(m, q, rows[4*d*i:4*d*(i+1)])
					if !(math.Abs(float64(got)-want) <= tolerance(d, size)) {
						t.Fatalf("seed %d: %v, %s, %d dimensions, row %d of %d at %d: %g, want %g ± %g", seed, m, name, d, i, n, shift, got, want, tolerance(d, size))
					}
					one := make([]float32, 1)
					k(q, rows[4*d*i:4*d*(i+1)], one)
					if one[0] != got {
						t.Fatalf("seed %d: %v, %s, %d dimensions: row %d is %g among others and %g alone", seed, m, name, d, i, got, one[0])
					}
				}
			}
		}
	}
}

func TestRowsAreOfLengthOne(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 0))
	for d := 1; d < 40; d++ {
		v := randomVector(r, d)
		got := Norm(IP.query(v))
		if math.Abs(got-1) > 1e-6 {
			t.Fatalf("seed %d: length %g", seed, got)
		}
	}
	if !zero(IP.Row(nil, []float32{0, float32(math.Copysign(0, -1))})) {
		t.Error("a zero vector has become another")
	}
	tiny := math.Float32frombits(1)
	if got := Norm(IP.query([]float32{0, tiny})); got != 1 {
		t.Errorf("the smallest vector has length %g", got)
	}
	if got := Norm(IP.query([]float32{math.MaxFloat32, math.MaxFloat32})); math.Abs(got-1) > 1e-6 {
		t.Errorf("the largest vector has length %g", got)
	}
}

func BenchmarkKernel(b *testing.B) {
	const d, n = 768, 1000
	r := rand.New(rand.NewPCG(1, 0))
	q := randomVector(r, d)
	buf := make([]byte, 2, 2+4*d*n) // as in a FAISS file, not aligned
	for range n {
		buf = appendRow(buf, randomVector(r, d))
	}
	out := make([]float32, n)
	for _, m := range []Metric{IP, L2} {
		for _, k := range []struct {
			name string
			k    kernel
		}{{"plain", plainKernel(m)}, {"fastest", kernelOf(m)}} {
			b.Run(m.String()+"/"+k.name, func(b *testing.B) {
				b.SetBytes(4 * d * n)
				for b.Loop() {
					k.k(q, buf[2:], out)
				}
			})
		}
	}
}
