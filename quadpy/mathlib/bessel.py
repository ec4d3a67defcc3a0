"""j0, j1.  Derivation and bounds: docs/explanation/math.md."""

from quadpy.mathlib.floats import fast_sum, horner
from quadpy.mathlib.library import expand, library, per_width
from quadpy.mathlib.ops import Float, Int, abs_, fma, select, sqrt
from quadpy.mathlib.reduction import reduce
from quadpy.mathlib.trig import sine_cosine, turn

SMALL = 1.5
FAR = 8.0
"""From here on, modulus and phase replace the product of zeros."""
INF = float("inf")
PI_4 = per_width(f32=0.7853981852531433, f64=0.7853981633974483)
PI_4_REST = per_width(f32=-2.1855694143368964e-08, f64=3.061616997868383e-17)
# The squares of the first two positive zeros, each in two parts.
ZEROS0 = per_width(
    f32=(5.783185958862305, 4.084479865440471e-09, 30.471261978149414, 3.655126761259453e-07),
    f64=(5.783185962946784, 4.123247343506204e-16, 30.471262343662087, -2.366534485750659e-16),
)
ZEROS1 = per_width(
    f32=(14.681970596313477, 4.5810416793301556e-08, 49.21845626831055, 5.3384056286631676e-08),
    f64=(14.681970642123893, -9.858177825793294e-17, 49.2184563216946, 5.086354069436341e-16),
)
SMALL0 = per_width(
    f32=(
        -0.24999985098838806,
        0.01562442909926176,
        -0.00043329817708581686,
        6.407680757547496e-06,
    ),
    f64=(
        -0.24999999999999997,
        0.015624999999999726,
        -0.0004340277777764858,
        6.781684024808923e-06,
        -6.781683648225113e-08,
        4.709474387478369e-10,
        -2.40156865013235e-12,
        9.093969685412011e-15,
    ),
)
SMALL1 = per_width(
    f32=(
        -0.12499997764825821,
        0.005208244081586599,
        -0.00010838946764124557,
        1.2948452194905258e-06,
    ),
    f64=(
        -0.125,
        0.005208333333333309,
        -0.00010850694444432557,
        1.3563368052769317e-06,
        -1.1302806350703792e-08,
        6.727833626368298e-11,
        -3.002294441569022e-13,
        1.0139362514991057e-15,
    ),
)
NEAR0 = per_width(
    f32=(
        8.793873712420464e-05,
        0.0007453605066984892,
        0.001594535424374044,
        0.0016414280980825424,
        0.0010171125177294016,
        0.00042158266296610236,
        0.00013475955347530544,
        2.2506357709062286e-05,
        9.469142241869122e-06,
    ),
    f64=(
        8.793873470842997e-05,
        0.0007453607032954435,
        0.0015945269601802246,
        0.001641549848154449,
        0.001016282304148642,
        0.00042460926987493815,
        0.0001285514398769575,
        2.9604872355847986e-05,
        5.3729832432673765e-06,
        7.895101415480885e-07,
        9.5966440188301e-08,
        9.799395175071315e-09,
        8.689687916818512e-10,
        5.807578246107453e-11,
        6.295930534420665e-12,
    ),
)
NEAR1 = per_width(
    f32=(
        4.0232756873592734e-05,
        0.00014890864258632064,
        0.0002125574101228267,
        0.00016677100211381912,
        8.407185669057071e-05,
        2.9555574656114914e-05,
        8.118982805171981e-06,
        1.2634106951736612e-06,
        4.4318193204162526e-07,
    ),
    f64=(
        4.0232757124382825e-05,
        0.00014890865399199934,
        0.00021255683740965036,
        0.00016677846521608584,
        8.402550596811934e-05,
        2.9712492586700853e-05,
        7.815812377336986e-06,
        1.593645002777861e-06,
        2.597489329075953e-07,
        3.46614883692186e-08,
        3.860535913443441e-09,
        3.640067622491149e-10,
        2.9923465631279915e-11,
        1.8888966583533842e-12,
        1.8745714059970852e-13,
    ),
)
MODULUS0 = per_width(
    f32=(
        0.7974998354911804,
        -0.0003800694248639047,
        4.516680291999364e-06,
        -1.5607255932081898e-07,
    ),
    f64=(
        0.797499818629752,
        -0.00038006989744906577,
        4.506774607838746e-06,
        -1.546341494067218e-07,
        9.787888251188893e-09,
        -9.346366153320848e-10,
        1.2016989688346746e-10,
        -1.9383928983883257e-11,
        3.737687236246292e-12,
        -7.937918531372724e-13,
        1.8922950777188163e-13,
        -8.041534450924227e-14,
        2.7139926868569057e-14,
    ),
)
MODULUS1 = per_width(
    f32=(
        0.7990441918373108,
        0.0011507824528962374,
        -8.624966540082823e-06,
        2.38386618889308e-07,
    ),
    f64=(
        0.7990442065634052,
        0.001150783021443344,
        -8.611413589859537e-06,
        2.3653601187139058e-07,
        -1.340687872803684e-08,
        1.2043774079211785e-09,
        -1.490935972434672e-10,
        2.343726967170741e-11,
        -4.435345759975171e-12,
        9.303341537327437e-13,
        -2.1961994922098246e-13,
        9.176610222668502e-14,
        -3.071598130943689e-14,
    ),
)
PHASE0 = per_width(
    f32=(
        -0.12450345605611801,
        0.00048509525367990136,
        -1.0902378562605008e-05,
        5.436580750028952e-07,
    ),
    f64=(
        -0.12450345867138758,
        0.00048509785023330475,
        -1.0858254767160312e-05,
        5.359525972654694e-07,
        -4.3396969790386476e-08,
        4.9682847624250295e-09,
        -7.354694735817149e-10,
        1.3300371445528072e-10,
        -2.8216593328467523e-11,
        6.399295311662022e-12,
        -1.6137815609593267e-12,
        7.778578735431012e-13,
        -2.7939802662988864e-13,
    ),
)
PHASE1 = per_width(
    f32=(
        0.3737398684024811,
        -0.0012394672958180308,
        1.985050221264828e-05,
        -8.138210887409514e-07,
    ),
    f64=(
        0.37373986827925865,
        -0.0012394706674384464,
        1.9790743827196382e-05,
        -8.03968640659095e-07,
        5.886120734904487e-08,
        -6.365954985496595e-09,
        9.092454720034545e-10,
        -1.6043027824037054e-10,
        3.3426080472440304e-11,
        -7.495062417582869e-12,
        1.8731006132152565e-12,
        -8.867574725342035e-13,
        3.159417712224725e-13,
    ),
)


@expand
def near(y: Float, zeros: tuple[float, ...], coefficients: tuple[float, ...]) -> Float:
    """``(y**2 - z1**2) * (y**2 - z2**2) * p(1 - y**2/64)``, for ``y`` up to FAR."""
    first = fma(y, y, -zeros[0]) - zeros[1]
    second = fma(y, y, -zeros[2]) - zeros[3]
    return first * second * horner((8.0 - y) * (8.0 + y) * 0.015625, coefficients)


@expand
def far(y: Float, quarters: int, modulus: tuple[float, ...], phase: tuple[float, ...]) -> Float:
    """``m(1/y**2) / sqrt(y) * cos(y - pi/4 - quarters*pi/2 + p(1/y**2)/y)``, for ``y`` from FAR on."""
    inverse = 1.0 / y
    u = inverse * inverse * 128.0 - 1.0
    quadrant, r, s = reduce(y)
    # r is a quarter turn's half at most: so is its distance from the nearer odd multiple of pi/4.
    right = r >= 0.0
    high, low = fast_sum(select(right, -PI_4, Float(PI_4)), r)
    angle, lost = fast_sum(high, horner(u, phase) * inverse)
    rest = s - ((low + lost) + select(right, -PI_4_REST, Float(PI_4_REST)))
    up, across = sine_cosine(angle, rest)
    turns = quadrant + select(right, Int(1 - quarters), Int(-quarters))
    return horner(u, modulus) / sqrt(y) * turn(turns, up, across)


@library(ulp=8.0)
def j0(x: Float) -> Float:
    """The Bessel function of the first kind of order 0.

    From 8 on the bound holds for the absolute error, as if the result were ``sqrt(2/(pi*x))``.
    """
    y = abs_(x)
    small = fma(y * y, horner(y * y, SMALL0), 1.0)
    below = select(y < SMALL, small, near(y, ZEROS0, NEAR0))
    result = select(y < FAR, below, far(select(y < FAR, FAR, y), 0, MODULUS0, PHASE0))
    return select(y == INF, 0.0, result)


@library(ulp=8.0)
def j1(x: Float) -> Float:
    """The Bessel function of the first kind of order 1.  From 8 on the bound holds for the absolute error, as of j0."""
    y = abs_(x)
    small = fma(y * y * 0.5, horner(y * y, SMALL1), 0.5)
    below = x * select(y < SMALL, small, near(y, ZEROS1, NEAR1))
    beyond = far(select(y < FAR, FAR, y), 1, MODULUS1, PHASE1)
    result = select(y < FAR, below, select(x < 0.0, -beyond, beyond))
    return select(y == INF, 0.0, result)
