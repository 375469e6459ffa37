//go:build !purego

#include "textflag.h"

// The row pointer runs on from row to row, for rows lie side by side. Go's
// assembler has no FADD, FSUB and FADDP of vectors: these are spelt as words.

#define SUM_LANES \
	WORD $0x4E21D400; /* FADD  V0.4S, V0.4S, V1.4S */ \
	WORD $0x4E23D442; /* FADD  V2.4S, V2.4S, V3.4S */ \
	WORD $0x4E22D400; /* FADD  V0.4S, V0.4S, V2.4S */ \
	WORD $0x6E20D400; /* FADDP V0.4S, V0.4S, V0.4S */ \
	WORD $0x6E20D400  /* FADDP V0.4S, V0.4S, V0.4S */

// func dotNEON(q *float32, rows *byte, d, n int, out *float32)
TEXT ·dotNEON(SB), NOSPLIT, $0-40
	MOVD q+0(FP), R0
	MOVD rows+8(FP), R1
	MOVD d+16(FP), R2
	MOVD n+24(FP), R3
	MOVD out+32(FP), R4

row:
	MOVD R0, R5
	MOVD R2, R6
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	SUBS $16, R6, R6
	BLT  rest

by16:
	VLD1.P 64(R5), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	VFMLA  V16.S4, V4.S4, V0.S4
	VFMLA  V17.S4, V5.S4, V1.S4
	VFMLA  V18.S4, V6.S4, V2.S4
	VFMLA  V19.S4, V7.S4, V3.S4
	SUBS   $16, R6, R6
	BGE    by16

rest:
	ADDS $12, R6, R6 // left - 4
	BLT  sum

by4:
	VLD1.P 16(R5), [V4.S4]
	VLD1.P 16(R1), [V16.S4]
	VFMLA  V16.S4, V4.S4, V0.S4
	SUBS   $4, R6, R6
	BGE    by4

sum:
	SUM_LANES
	ADDS $4, R6, R6
	BEQ  store

by1:
	FMOVS  (R5), F4
	FMOVS  (R1), F16
	FMADDS F16, F0, F4, F0
	ADD    $4, R5, R5
	ADD    $4, R1, R1
	SUBS   $1, R6, R6
	BNE    by1

store:
	FMOVS F0, (R4)
	ADD   $4, R4, R4
	SUBS  $1, R3, R3
	BNE   row
	RET

// func squaresNEON(q *float32, rows *byte, d, n int, out *float32)
TEXT ·squaresNEON(SB), NOSPLIT, $0-40
	MOVD q+0(FP), R0
	MOVD rows+8(FP), R1
	MOVD d+16(FP), R2
	MOVD n+24(FP), R3
	MOVD out+32(FP), R4

row:
	MOVD R0, R5
	MOVD R2, R6
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	SUBS $16, R6, R6
	BLT  rest

by16:
	VLD1.P 64(R5), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	WORD   $0x4EB0D484 // FSUB V4.4S, V4.4S, V16.4S
	WORD   $0x4EB1D4A5 // FSUB V5.4S, V5.4S, V17.4S
	WORD   $0x4EB2D4C6 // FSUB V6.4S, V6.4S, V18.4S
	WORD   $0x4EB3D4E7 // FSUB V7.4S, V7.4S, V19.4S
	VFMLA  V4.S4, V4.S4, V0.S4
	VFMLA  V5.S4, V5.S4, V1.S4
	VFMLA  V6.S4, V6.S4, V2.S4
	VFMLA  V7.S4, V7.S4, V3.S4
	SUBS   $16, R6, R6
	BGE    by16

rest:
	ADDS $12, R6, R6 // left - 4
	BLT  sum

by4:
	VLD1.P 16(R5), [V4.S4]
	VLD1.P 16(R1), [V16.S4]
	WORD   $0x4EB0D484 // FSUB V4.4S, V4.4S, V16.4S
	VFMLA  V4.S4, V4.S4, V0.S4
	SUBS   $4, R6, R6
	BGE    by4

sum:
	SUM_LANES
	ADDS $4, R6, R6
	BEQ  store

by1:
	FMOVS  (R5), F4
	FMOVS  (R1), F16
	FSUBS  F16, F4, F4
	FMADDS F4, F0, F4, F0
	ADD    $4, R5, R5
	ADD    $4, R1, R1
	SUBS   $1, R6, R6
	BNE    by1

store:
	FMOVS F0, (R4)
	ADD   $4, R4, R4
	SUBS  $1, R3, R3
	BNE   row
	RET
