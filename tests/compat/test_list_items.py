"""Items of tuples, which programs of Taichi's may assign; in quadpy, as in Python, only items of lists and dicts change."""

import quadpy.compat.taichi as ti


def test_items_of_a_tuple_may_be_assigned():
    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, 2)

    @ti.kernel
    def k():
        pair = (1.0, 2.0)
        pair[0] = 5
        pair[1] += 0.5
        out[0], out[1] = pair

    k()
    assert out.to_numpy().tolist() == [5, 2.5]
