//go:build !purego

#include "textflag.h"

// The row pointer runs on from row to row, for rows lie side by side.

// func dotAVX2(q *float32, rows *byte, d, n int, out *float32)
TEXT ·dotAVX2(SB), NOSPLIT, $0-40
	MOVQ q+0(FP), SI
	MOVQ rows+8(FP), DI
	MOVQ d+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), R8

row:
	MOVQ   SI, R9
	MOVQ   DX, R10
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ   $32, R10
	JLT    rest

by32:
	VMOVUPS     (R9), Y4
	VMOVUPS     32(R9), Y5
	VMOVUPS     64(R9), Y6
	VMOVUPS     96(R9), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ        $128, R9
	ADDQ        $128, DI
	SUBQ        $32, R10
	JGE         by32

rest:
	ADDQ $24, R10 // left - 8
	JLT  sum

by8:
	VMOVUPS     (R9), Y4
	VFMADD231PS (DI), Y4, Y0
	ADDQ        $32, R9
	ADDQ        $32, DI
	SUBQ        $8, R10
	JGE         by8

sum:
	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VPERMILPS    $0x4E, X0, X1
	VADDPS       X1, X0, X0
	VPERMILPS    $0xB1, X0, X1
	VADDPS       X1, X0, X0
	ADDQ         $8, R10
	JZ           store

by1:
	VMOVSS      (R9), X4
	VFMADD231SS (DI), X4, X0
	ADDQ        $4, R9
	ADDQ        $4, DI
	DECQ        R10
	JNZ         by1

store:
	VMOVSS X0, (R8)
	ADDQ   $4, R8
	DECQ   CX
	JNZ    row
	VZEROUPPER
	RET

// func squaresAVX2(q *float32, rows *byte, d, n int, out *float32)
TEXT ·squaresAVX2(SB), NOSPLIT, $0-40
	MOVQ q+0(FP), SI
	MOVQ rows+8(FP), DI
	MOVQ d+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), R8

row:
	MOVQ   SI, R9
	MOVQ   DX, R10
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ   $32, R10
	JLT    rest

by32:
	VMOVUPS     (R9), Y4
	VMOVUPS     32(R9), Y5
	VMOVUPS     64(R9), Y6
	VMOVUPS     96(R9), Y7
	VSUBPS      (DI), Y4, Y4
	VSUBPS      32(DI), Y5, Y5
	VSUBPS      64(DI), Y6, Y6
	VSUBPS      96(DI), Y7, Y7
	VFMADD231PS Y4, Y4, Y0
	VFMADD231PS Y5, Y5, Y1
	VFMADD231PS Y6, Y6, Y2
	VFMADD231PS Y7, Y7, Y3
	ADDQ        $128, R9
	ADDQ        $128, DI
	SUBQ        $32, R10
	JGE         by32

rest:
	ADDQ $24, R10 // left - 8
	JLT  sum

by8:
	VMOVUPS     (R9), Y4
	VSUBPS      (DI), Y4, Y4
	VFMADD231PS Y4, Y4, Y0
	ADDQ        $32, R9
	ADDQ        $32, DI
	SUBQ        $8, R10
	JGE         by8

sum:
	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VPERMILPS    $0x4E, X0, X1
	VADDPS       X1, X0, X0
	VPERMILPS    $0xB1, X0, X1
	VADDPS       X1, X0, X0
	ADDQ         $8, R10
	JZ           store

by1:
	VMOVSS      (R9), X4
	VSUBSS      (DI), X4, X4
	VFMADD231SS X4, X4, X0
	ADDQ        $4, R9
	ADDQ        $4, DI
	DECQ        R10
	JNZ         by1

store:
	VMOVSS X0, (R8)
	ADDQ   $4, R8
	DECQ   CX
	JNZ    row
	VZEROUPPER
	RET
