// SPDX-License-Identifier: Apache-2.0
// One triangle that covers the whole target, from no vertex data at all: its corners are (-1, -1), (3, -1)
// and (-1, 3), of which the square from -1 to 1 is what is seen.
void main() {
    gl_Position = vec4(gl_VertexID == 1 ? 3. : -1., gl_VertexID == 2 ? 3. : -1., 0., 1.);
}
