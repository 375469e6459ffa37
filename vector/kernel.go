package vector

import (
	"encoding/binary"
	"math"
)

// kernel compares the vector q with len(out) rows that follow each other in memory, little-endian and unaligned. For
// each row it writes one number to out: the dot product or the squared distance. The result for a row does not depend
// on the position of the row or on the other rows, so a vector has the same score in base, delta and overlay.
type kernel func(q []float32, rows []byte, out []float32)

func plainKernel(m Metric) kernel {
	if m == L2 {
		return squares
	}
	return dot
}

// dot is the kernel for dot products in plain Go. It uses four sums, so that an addition does not wait for the previous
// one.
func dot(q []float32, rows []byte, out []float32) {
	for i := range out {
		row := rows[4*len(q)*i : 4*len(q)*(i+1)]
		var s0, s1, s2, s3 float32
		j := 0
		for ; j+4 <= len(q); j += 4 {
			s0 += q[j] * elementAt(row, j)
			s1 += q[j+1] * elementAt(row, j+1)
			s2 += q[j+2] * elementAt(row, j+2)
			s3 += q[j+3] * elementAt(row, j+3)
		}
		for ; j < len(q); j++ {
			s0 += q[j] * elementAt(row, j)
		}
		out[i] = (s0 + s1) + (s2 + s3)
	}
}

// squares is the kernel for squared distances in plain Go.
func squares(q []float32, rows []byte, out []float32) {
	for i := range out {
		row := rows[4*len(q)*i : 4*len(q)*(i+1)]
		var s0, s1, s2, s3 float32
		j := 0
		for ; j+4 <= len(q); j += 4 {
			d0, d1 := q[j]-elementAt(row, j), q[j+1]-elementAt(row, j+1)
			d2, d3 := q[j+2]-elementAt(row, j+2), q[j+3]-elementAt(row, j+3)
			s0 += d0 * d0
			s1 += d1 * d1
			s2 += d2 * d2
			s3 += d3 * d3
		}
		for ; j < len(q); j++ {
			d := q[j] - elementAt(row, j)
			s0 += d * d
		}
		out[i] = (s0 + s1) + (s2 + s3)
	}
}

// elementAt returns element j of a row, which has the elements of a vector as little-endian bytes.
func elementAt(row []byte, j int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(row[4*j:]))
}
