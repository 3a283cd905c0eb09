// RunPass in the instruction set of the file that includes this, once each, within
// namespace mica::cpu.
template <class R>
void RunPassIn(const Pass& p) {
  const pocketfft::shape_t sizes(p.sizes, p.sizes + p.ndim);
  const pocketfft::stride_t in(p.in_strides, p.in_strides + p.ndim),
      out(p.out_strides, p.out_strides + p.ndim);
  const auto axis = static_cast<size_t>(p.axis);
  const auto factor = static_cast<R>(p.factor);
  using Complex = std::complex<R>;
  switch (p.kind) {
    case PassKind::kComplex:
      return pocketfft::c2c(sizes, in, out, {axis}, p.forward, static_cast<const Complex*>(p.in),
                            static_cast<Complex*>(p.out), factor);
    case PassKind::kRealToComplex:
      return pocketfft::r2c(sizes, in, out, axis, p.forward, static_cast<const R*>(p.in),
                            static_cast<Complex*>(p.out), factor);
    case PassKind::kComplexToReal:
      return pocketfft::c2r(sizes, in, out, axis, p.forward, static_cast<const Complex*>(p.in),
                            static_cast<R*>(p.out), factor);
  }
}
