;; The inner loops of picture nodes, sixteen bytes at a time. `columns` and `line` compute the sums of
;; resample/lanczos.ts, and `averages` the rows of codecs/encode-png.ts, equal to the bit: weights are
;; fixed-point numbers of 22 binary places, half a step is added, and values below 0 or above 255 are
;; cut off. `react` computes the rows of reaction/field.ts.
(module
  (import "env" "memory" (memory 1))

  ;; Computes one row of the target from $taps consecutive rows, in pieces of sixteen bytes. It may
  ;; read and write up to fifteen bytes beyond the row.
  (func (export "columns")
    (param $source i32) (param $target i32) (param $weights i32) (param $taps i32) (param $length i32)
    (local $i i32) (local $at i32) (local $tap i32) (local $end i32)
    (local $weight v128) (local $bytes v128) (local $half v128)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $end (i32.add (local.get $weights) (i32.shl (local.get $taps) (i32.const 2))))
    (loop $piece
      (local.set $a (v128.const i32x4 2097152 2097152 2097152 2097152))
      (local.set $b (local.get $a))
      (local.set $c (local.get $a))
      (local.set $d (local.get $a))
      (local.set $at (i32.add (local.get $source) (local.get $i)))
      (local.set $tap (local.get $weights))
      (loop $sum
        (local.set $weight (v128.load32_splat (local.get $tap)))
        (local.set $bytes (v128.load (local.get $at)))
        (local.set $half (i16x8.extend_low_i8x16_u (local.get $bytes)))
        (local.set $a (i32x4.add (local.get $a)
          (i32x4.mul (local.get $weight) (i32x4.extend_low_i16x8_u (local.get $half)))))
        (local.set $b (i32x4.add (local.get $b)
          (i32x4.mul (local.get $weight) (i32x4.extend_high_i16x8_u (local.get $half)))))
        (local.set $half (i16x8.extend_high_i8x16_u (local.get $bytes)))
        (local.set $c (i32x4.add (local.get $c)
          (i32x4.mul (local.get $weight) (i32x4.extend_low_i16x8_u (local.get $half)))))
        (local.set $d (i32x4.add (local.get $d)
          (i32x4.mul (local.get $weight) (i32x4.extend_high_i16x8_u (local.get $half)))))
        (local.set $at (i32.add (local.get $at) (local.get $length)))
        (local.set $tap (i32.add (local.get $tap) (i32.const 4)))
        (br_if $sum (i32.lt_u (local.get $tap) (local.get $end))))
      (v128.store (i32.add (local.get $target) (local.get $i))
        (i8x16.narrow_i16x8_u
          (i16x8.narrow_i32x4_s
            (i32x4.shr_s (local.get $a) (i32.const 22))
            (i32x4.shr_s (local.get $b) (i32.const 22)))
          (i16x8.narrow_i32x4_s
            (i32x4.shr_s (local.get $c) (i32.const 22))
            (i32x4.shr_s (local.get $d) (i32.const 22)))))
      (local.set $i (i32.add (local.get $i) (i32.const 16)))
      (br_if $piece (i32.lt_u (local.get $i) (local.get $length)))))

  ;; Computes one row of the target from one row of the source, for pixels of one to four channels.
  ;; $reach is a multiple of four. $masks has the positions of the bytes of four consecutive pixels,
  ;; each spread over four lanes. It may read up to fifteen bytes beyond the weighed bytes, and write
  ;; up to three bytes beyond the row.
  (func (export "line")
    (param $source i32) (param $target i32) (param $firsts i32) (param $weights i32)
    (param $reach i32) (param $channels i32) (param $width i32) (param $masks i32)
    (local $at i32) (local $end i32) (local $last i32) (local $step i32)
    (local $sum v128) (local $other v128) (local $bytes v128)
    (local $first v128) (local $second v128) (local $third v128) (local $fourth v128)
    (local.set $first (v128.load (local.get $masks)))
    (local.set $second (v128.load offset=16 (local.get $masks)))
    (local.set $third (v128.load offset=32 (local.get $masks)))
    (local.set $fourth (v128.load offset=48 (local.get $masks)))
    (local.set $reach (i32.shl (local.get $reach) (i32.const 2)))
    (local.set $step (i32.shl (local.get $channels) (i32.const 2)))
    (local.set $last (i32.add (local.get $firsts) (i32.shl (local.get $width) (i32.const 2))))
    (loop $pixel
      (local.set $at (i32.add (local.get $source)
        (i32.mul (i32.load (local.get $firsts)) (local.get $channels))))
      (local.set $end (i32.add (local.get $weights) (local.get $reach)))
      (local.set $sum (v128.const i32x4 2097152 2097152 2097152 2097152))
      (local.set $other (v128.const i32x4 0 0 0 0))
      (loop $taps
        (local.set $bytes (v128.load (local.get $at)))
        (local.set $sum (i32x4.add (local.get $sum)
          (i32x4.mul (v128.load32_splat (local.get $weights))
            (i8x16.swizzle (local.get $bytes) (local.get $first)))))
        (local.set $other (i32x4.add (local.get $other)
          (i32x4.mul (v128.load32_splat offset=4 (local.get $weights))
            (i8x16.swizzle (local.get $bytes) (local.get $second)))))
        (local.set $sum (i32x4.add (local.get $sum)
          (i32x4.mul (v128.load32_splat offset=8 (local.get $weights))
            (i8x16.swizzle (local.get $bytes) (local.get $third)))))
        (local.set $other (i32x4.add (local.get $other)
          (i32x4.mul (v128.load32_splat offset=12 (local.get $weights))
            (i8x16.swizzle (local.get $bytes) (local.get $fourth)))))
        (local.set $at (i32.add (local.get $at) (local.get $step)))
        (local.set $weights (i32.add (local.get $weights) (i32.const 16)))
        (br_if $taps (i32.lt_u (local.get $weights) (local.get $end))))
      (local.set $sum (i32x4.shr_s (i32x4.add (local.get $sum) (local.get $other)) (i32.const 22)))
      (local.set $sum (i16x8.narrow_i32x4_s (local.get $sum) (local.get $sum)))
      (i32.store (local.get $target)
        (i32x4.extract_lane 0 (i8x16.narrow_i16x8_u (local.get $sum) (local.get $sum))))
      (local.set $target (i32.add (local.get $target) (local.get $channels)))
      (local.set $firsts (i32.add (local.get $firsts) (i32.const 4)))
      (br_if $pixel (i32.lt_u (local.get $firsts) (local.get $last)))))

  ;; Computes the difference of a row to the mean, rounded down, of the pixels to the left and above.
  ;; Before the row there are as many zeros as a pixel has channels. It may read and write up to
  ;; fifteen bytes beyond the row.
  (func (export "averages")
    (param $row i32) (param $above i32) (param $target i32) (param $channels i32) (param $length i32)
    (local $i i32) (local $left v128) (local $up v128)
    (loop $piece
      (local.set $left (v128.load (i32.sub
        (i32.add (local.get $row) (local.get $i)) (local.get $channels))))
      (local.set $up (v128.load (i32.add (local.get $above) (local.get $i))))
      (v128.store (i32.add (local.get $target) (local.get $i))
        (i8x16.sub (v128.load (i32.add (local.get $row) (local.get $i)))
          (i8x16.add
            (v128.and (local.get $left) (local.get $up))
            (i8x16.shr_u (v128.xor (local.get $left) (local.get $up)) (i32.const 1)))))
      (local.set $i (i32.add (local.get $i) (i32.const 16)))
      (br_if $piece (i32.lt_u (local.get $i) (local.get $length)))))

  ;; Computes one row of the next time step of field.ts, two cells at a time, equal to the bit: with
  ;; numbers of 64 bits as in JavaScript. The addresses are those of the cells before the row. It may
  ;; read up to two cells beyond those behind the row, and write one.
  (func (export "react")
    (param $fed i32) (param $grown i32) (param $nextFed i32) (param $nextGrown i32)
    (param $stride i32) (param $width i32) (param $feed f64) (param $kept f64)
    (local $end i32) (local $u v128) (local $uWest v128) (local $uEast v128)
    (local $uWestPair v128) (local $uEastPair v128) (local $uAround v128)
    (local $v v128) (local $vWest v128) (local $vEast v128)
    (local $vWestPair v128) (local $vEastPair v128) (local $vAround v128)
    (local $feeds v128) (local $keeps v128) (local $one v128) (local $side v128) (local $corner v128)
    (local.set $feeds (f64x2.splat (local.get $feed)))
    (local.set $keeps (f64x2.splat (local.get $kept)))
    (local.set $one (v128.const f64x2 1 1))
    (local.set $side (v128.const f64x2 0.2 0.2))
    (local.set $corner (v128.const f64x2 0.05 0.05))
    (local.set $end (i32.add (local.get $fed) (i32.shl (local.get $width) (i32.const 2))))
    (local.set $uWest (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $fed))))
    (local.set $vWest (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $grown))))
    (local.set $uWestPair (f64x2.add
      (f64x2.promote_low_f32x4 (v128.load64_zero (i32.sub (local.get $fed) (local.get $stride))))
      (f64x2.promote_low_f32x4 (v128.load64_zero (i32.add (local.get $fed) (local.get $stride))))))
    (local.set $vWestPair (f64x2.add
      (f64x2.promote_low_f32x4 (v128.load64_zero (i32.sub (local.get $grown) (local.get $stride))))
      (f64x2.promote_low_f32x4 (v128.load64_zero (i32.add (local.get $grown) (local.get $stride))))))
    (loop $cells
      (local.set $uEast (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $fed))))
      (local.set $vEast (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $grown))))
      (local.set $uEastPair (f64x2.add
        (f64x2.promote_low_f32x4
          (v128.load64_zero offset=8 (i32.sub (local.get $fed) (local.get $stride))))
        (f64x2.promote_low_f32x4
          (v128.load64_zero offset=8 (i32.add (local.get $fed) (local.get $stride))))))
      (local.set $vEastPair (f64x2.add
        (f64x2.promote_low_f32x4
          (v128.load64_zero offset=8 (i32.sub (local.get $grown) (local.get $stride))))
        (f64x2.promote_low_f32x4
          (v128.load64_zero offset=8 (i32.add (local.get $grown) (local.get $stride))))))
      (local.set $u (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
        (local.get $uWest) (local.get $uEast)))
      (local.set $v (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
        (local.get $vWest) (local.get $vEast)))
      (local.set $uAround (f64x2.add
        (f64x2.mul (local.get $side)
          (f64x2.add (f64x2.add (local.get $uWest) (local.get $uEast))
            (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
              (local.get $uWestPair) (local.get $uEastPair))))
        (f64x2.mul (local.get $corner)
          (f64x2.add (local.get $uWestPair) (local.get $uEastPair)))))
      (local.set $vAround (f64x2.add
        (f64x2.mul (local.get $side)
          (f64x2.add (f64x2.add (local.get $vWest) (local.get $vEast))
            (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
              (local.get $vWestPair) (local.get $vEastPair))))
        (f64x2.mul (local.get $corner)
          (f64x2.add (local.get $vWestPair) (local.get $vEastPair)))))
      (local.set $uWest (local.get $uEast))
      (local.set $vWest (local.get $vEast))
      (local.set $uWestPair (local.get $uEastPair))
      (local.set $vWestPair (local.get $vEastPair))
      ;; From here on $uEast holds the reacting part, and $vEast the next level of the grown substance.
      (local.set $uEast (f64x2.mul (f64x2.mul (local.get $u) (local.get $v)) (local.get $v)))
      (local.set $vEast (f64x2.add
        (f64x2.add (f64x2.mul (v128.const f64x2 0.5 0.5) (local.get $vAround)) (local.get $uEast))
        (f64x2.mul (local.get $keeps) (local.get $v))))
      (v128.store64_lane offset=4 0 (local.get $nextFed)
        (f32x4.demote_f64x2_zero
          (f64x2.pmin
            (f64x2.pmax
              (f64x2.add
                (f64x2.sub (local.get $uAround) (local.get $uEast))
                (f64x2.mul (local.get $feeds) (f64x2.sub (local.get $one) (local.get $u))))
              (v128.const f64x2 0 0))
            (local.get $one))))
      (v128.store64_lane offset=4 0 (local.get $nextGrown)
        (f32x4.demote_f64x2_zero
          (v128.andnot
            (f64x2.pmin (local.get $vEast) (local.get $one))
            (f64x2.lt (local.get $vEast) (v128.const f64x2 1e-12 1e-12)))))
      (local.set $fed (i32.add (local.get $fed) (i32.const 8)))
      (local.set $grown (i32.add (local.get $grown) (i32.const 8)))
      (local.set $nextFed (i32.add (local.get $nextFed) (i32.const 8)))
      (local.set $nextGrown (i32.add (local.get $nextGrown) (i32.const 8)))
      (br_if $cells (i32.lt_u (local.get $fed) (local.get $end))))))
